#include "compiler/HostMaths.h"

#include "base/Fork.h"
#include "compiler/CompilerMemory.h"
#include "compiler/Jit.h"
#include "compiler/Libclc.h"
#include "compiler/Target.h"
#include "conversion/KernelToLLVM/MathLibrary.h"
#include "conversion/LLVMPasses.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"

#include <map>
#include <mutex>

using namespace llvm;

namespace costate::compiler {
namespace {

/// They have been optimised.
constexpr const char *inliningPasses =
    "always-inline,globaldce,function(early-cse,simplifycfg)";

/// Drops declarations that nobody uses; whether there are others.
bool declaresSome(Module &module) {
  bool found = false;
  for (Function &function : make_early_inc_range(module)) {
    if (!function.isDeclaration() ||
        !function.getName().starts_with(conversion::hostFunctionPrefix))
      continue;
    found |= !function.use_empty();
    if (function.use_empty())
      function.eraseFromParent();
  }
  return found;
}

/// A module with one function and what it calls.
Result<std::string> compileAlone(const std::string &name) {
  LLVMContext context;
  Module module(name, context);
  std::unique_ptr<TargetMachine> machine = createTargetMachine();
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  Type *type = Type::getVoidTy(context); // linking replaces the declaration
  module.getOrInsertFunction(name, FunctionType::get(type, false));
  if (Result<> linked = linkLibrary(module, DeviceLibrary::Host); !linked)
    return linked.error();
  module.getFunction(name)->setLinkage(GlobalValue::ExternalLinkage);
  setAttributes(module);
  return emitObject(module, *machine);
}

void *loadAlone(const std::string &name) {
  Result<std::string> object = compileAlone(name);
  if (!object)
    return nullptr;
  Result<LoadedCode> code =
      load(MemoryBuffer::getMemBufferCopy(*object, name), name);
  if (!code)
    return nullptr;
  new LoadedCode(*code); // stays
  return reinterpret_cast<void *>(code->entry);
}

} // namespace

Result<> defineHostMaths(Module &module, TargetMachine &machine) {
  if (!declaresSome(module))
    return {};
  if (Result<> linked = linkLibrary(module, DeviceLibrary::Host); !linked)
    return linked;
  setAttributes(module);
  conversion::runPasses(module, machine, [](PassBuilder &builder) {
    return conversion::parsePasses(builder, inliningPasses);
  });
  return {};
}

void *findHostMaths(const std::string &name) {
  static auto &mutex = *new Mutex;
  static auto &found = *new std::map<std::string, void *>;
  std::lock_guard lock(mutex);
  auto [place, isNew] = found.try_emplace(name, nullptr);
  if (isNew)
    place->second = loadAlone(name);
  return place->second;
}

} // namespace costate::compiler
