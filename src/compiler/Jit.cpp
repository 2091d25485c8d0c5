#include "compiler/Jit.h"

#include "base/Fork.h"
#include "code/RuntimeFunctions.h"
#include "compiler/CompilerMemory.h"
#include "compiler/HostMaths.h"
#include "compiler/Target.h"
#include "device/DeviceSums.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <dlfcn.h>
#include <mutex>

using namespace llvm;
using namespace llvm::orc;

namespace costate::compiler {
namespace {

/// LLVM does not tell why memory for code, or a library, was not available.
Failure internal(llvm::Error error) {
  std::string text = toString(std::move(error));
  if (!hasMemoryToCompile())
    return noMemoryToCompile();
  return Failure{ErrorCode::Internal, text};
}

/// Functions of the runtime and our own, which no dynamic symbol table need
/// show.
SymbolMap hostSymbols(LLJIT &jit) {
  SymbolMap symbols;
  auto add = [&](StringRef name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {ExecutorAddr::fromPtr(function),
                                          JITSymbolFlags::Exported |
                                              JITSymbolFlags::Callable};
  };
  for (const runtime::RuntimeFunction &function : runtime::runtimeFunctions())
    add(function.name, function.address);
#define COSTATE_OF_Compiler(name) add(#name, &name);
#define COSTATE_OF_Runtime(name)
#define COSTATE_OF_None(name)
#define COSTATE_DEVICE(gpu, host, name) COSTATE_OF_##host(costate_device_##name)
#include "device/functions.def"
  return symbols;
}

/// Linked when one of their functions is first called.
llvm::Error addHostMaths(LLJIT &jit) {
  for (StringRef object : hostMathsObjects(host().maths))
    if (llvm::Error error = jit.addObjectFile(
            jit.getMainJITDylib(),
            MemoryBuffer::getMemBuffer(object, "functions", false)))
      return error;
  return llvm::Error::success();
}

/// Functions of SLEEF, which is loaded when one of them is first used.
class Sleef final : public DefinitionGenerator {
public:
  explicit Sleef(char prefix) : prefix(prefix) {}

  llvm::Error tryToGenerate(LookupState &state, LookupKind kind,
                            JITDylib &library, JITDylibLookupFlags flags,
                            const SymbolLookupSet &symbols) override {
    if (llvm::none_of(symbols,
                      [](const auto &one) { return isOurs(one.first); }))
      return llvm::Error::success();
    if (llvm::Error error = open())
      return error;
    return opened->tryToGenerate(state, kind, library, flags, symbols);
  }

private:
  static bool isOurs(const SymbolStringPtr &name) {
    return (*name).starts_with("Sleef_");
  }

  llvm::Error open() {
    if (opened)
      return llvm::Error::success();
    // LLVM closes it at the end of the process, where code may still run.
    dlopen("libsleef.so.3", RTLD_NOW | RTLD_NODELETE);
    auto loaded =
        DynamicLibrarySearchGenerator::Load("libsleef.so.3", prefix, isOurs);
    if (!loaded)
      return loaded.takeError();
    opened = std::move(*loaded);
    return llvm::Error::success();
  }

  char prefix;
  std::unique_ptr<DefinitionGenerator> opened;
};

llvm::Error addLibraries(LLJIT &jit) {
  JITDylib &library = jit.getMainJITDylib();
  if (llvm::Error error = library.define(absoluteSymbols(hostSymbols(jit))))
    return error;
  char prefix = jit.getDataLayout().getGlobalPrefix();
  if (host().maths != "libm")
    library.addGenerator(std::make_unique<Sleef>(prefix));
  if (llvm::Error error = addHostMaths(jit))
    return error;
  auto process = DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix);
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  return llvm::Error::success();
}

/// Tells the runtime where compiled code stands.
class CodePlaces final : public ObjectLinkingLayer::Plugin {
public:
  void modifyPassConfig(MaterializationResponsibility &responsibility,
                        jitlink::LinkGraph &,
                        jitlink::PassConfiguration &passes) override {
    passes.PostFixupPasses.push_back(
        [this, &responsibility](jitlink::LinkGraph &graph) {
          return responsibility.withResourceKeyDo(
              [&](ResourceKey key) { add(key, graph); });
        });
  }
  llvm::Error notifyFailed(MaterializationResponsibility &) override {
    return llvm::Error::success();
  }
  llvm::Error notifyRemovingResources(JITDylib &, ResourceKey key) override {
    std::lock_guard lock(mutex);
    for (uintptr_t begin : places[key])
      runtime::removeCompiledCode(begin);
    places.erase(key);
    return llvm::Error::success();
  }
  void notifyTransferringResources(JITDylib &, ResourceKey to,
                                   ResourceKey from) override {
    std::lock_guard lock(mutex);
    std::vector<uintptr_t> moved = std::move(places[from]);
    places.erase(from);
    places[to].insert(places[to].end(), moved.begin(), moved.end());
  }

private:
  void add(ResourceKey key, jitlink::LinkGraph &graph) {
    std::lock_guard lock(mutex);
    for (jitlink::Section &section : graph.sections()) {
      jitlink::SectionRange range(section);
      if ((section.getMemProt() & MemProt::Exec) == MemProt::None ||
          range.empty())
        continue;
      runtime::addCompiledCode(range.getStart().getValue(),
                               range.getEnd().getValue());
      places[key].push_back(range.getStart().getValue());
    }
  }

  Mutex mutex;
  std::map<ResourceKey, std::vector<uintptr_t>> places;
};

/// For a session that links objects only.
class NoCompiler final : public IRCompileLayer::IRCompiler {
public:
  NoCompiler() : IRCompiler({}) {}

  Expected<std::unique_ptr<MemoryBuffer>> operator()(Module &) override {
    return createStringError("nothing is compiled here");
  }
};

Expected<std::unique_ptr<LLJIT>> createJit() {
  Triple triple(host().triple);
  auto jit = LLJITBuilder()
                 .setJITTargetMachineBuilder(JITTargetMachineBuilder(triple))
                 .setDataLayout(DataLayout(triple.computeDataLayout()))
                 .setCompileFunctionCreator(
                     [](auto) { return std::make_unique<NoCompiler>(); })
                 .setPlatformSetUp(setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  if (auto *layer = dyn_cast<ObjectLinkingLayer>(&(*jit)->getObjLinkingLayer()))
    layer->addPlugin(std::make_shared<CodePlaces>());
  if (llvm::Error error = addLibraries(**jit))
    return std::move(error);
  return jit;
}

/// The one that links. Never destroyed: code outlives every static object that
/// runs it.
struct Session {
  std::unique_ptr<LLJIT> jit;
  std::atomic<bool> isBroken = false; ///< nobody may use it any more
};
using SessionPointer = std::shared_ptr<Session>;

struct Shared {
  Mutex mutex;
  SessionPointer session;
};

Shared &shared() {
  static auto &shared = *new Shared;
  return shared;
}

Result<SessionPointer> sharedSession() {
  std::lock_guard lock(shared().mutex);
  if (shared().session)
    return shared().session;
  auto made = createJit();
  if (!made)
    return internal(joinErrors(createStringError("cannot start the compiler"),
                               made.takeError()));
  auto *kept = new SessionPointer(std::make_shared<Session>());
  (*kept)->jit = std::move(*made);
  return shared().session = *kept;
}

/// Symbols that were not found once are not found again: what is linked later
/// comes to another one.
void abandon(const SessionPointer &session) {
  std::lock_guard lock(shared().mutex);
  if (shared().session == session)
    shared().session = nullptr;
}

void unload(Session &session, JITDylib *library) {
  ForeignWork work;
  if (!session.isBroken)
    consumeError(library->getExecutionSession().removeJITDylib(*library));
}

} // namespace

static Result<LoadedCode> loadInto(const SessionPointer &session,
                                   std::unique_ptr<MemoryBuffer> object,
                                   const std::string &entry,
                                   const std::vector<std::string> &others) {
  static std::atomic<uint64_t> number{0};
  LLJIT &jit = *session->jit;
  auto library = jit.createJITDylib("code" + std::to_string(number++));
  if (!library)
    return internal(library.takeError());
  std::shared_ptr<void> owner(&*library, [session](void *p) {
    unload(*session, static_cast<JITDylib *>(p));
  });
  library->addToLinkOrder(jit.getMainJITDylib());
  if (llvm::Error error = jit.addObjectFile(*library, std::move(object)))
    return internal(std::move(error));
  LoadedCode code{nullptr, {}, std::move(owner)};
  Expected<ExecutorAddr> address = jit.lookup(*library, entry);
  if (!address)
    return internal(address.takeError());
  code.entry = address->toPtr<runtime::Entry>();
  for (const std::string &symbol : others) {
    address = jit.lookup(*library, symbol);
    if (!address)
      return internal(address.takeError());
    code.addresses[symbol] = address->toPtr<void *>();
  }
  return code;
}

void *findFunction(const std::string &name) {
  ForeignWork work;
  Result<SessionPointer> session = sharedSession();
  if (!session)
    return nullptr;
  LLJIT &jit = *(*session)->jit;
  Expected<ExecutorAddr> address = jit.lookup(jit.getMainJITDylib(), name);
  if (address)
    return address->toPtr<void *>();
  consumeError(address.takeError());
  return nullptr;
}

Result<LoadedCode> load(std::unique_ptr<MemoryBuffer> object,
                        const std::string &entry,
                        const std::vector<std::string> &others) {
  ForeignWork work;
  Result<SessionPointer> session = sharedSession();
  if (!session)
    return session.error();
  try {
    auto code = loadInto(*session, std::move(object), entry, others);
    if (!code)
      abandon(*session);
    return code;
  } catch (const std::bad_alloc &) {
    (*session)->isBroken = true;
    abandon(*session);
    return noMemoryToCompile();
  }
}

} // namespace costate::compiler
