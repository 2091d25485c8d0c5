#include "compiler/Codegen.h"

#include "compiler/Diagnostics.h"
#include "compiler/Jit.h"
#include "compiler/Pipelines.h"
#include "compiler/Target.h"
#include "compiler/Timings.h"
#include "conversion/KernelToLLVM/Runtime.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"

#include <deque>

using namespace mlir;

namespace costate::compiler {
namespace {

/// Keeps code alive, and the file names that its sites point to.
struct CodeOwner {
  std::shared_ptr<void> code;
  std::deque<std::string> files;

  const char *keep(StringRef file) {
    for (const std::string &known : files)
      if (known == file)
        return known.c_str();
    return files.emplace_back(file).c_str();
  }
};

struct LLVMCode {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

Result<> convert(ModuleOp module, const Options &options,
                 DiagnosticText &diagnostics) {
  Stopwatch watch(lastTimings().convert);
  PassManager passes(module.getContext());
  enableChecks(passes);
  addHostPasses(passes, options);
  if (succeeded(passes.run(module)))
    return {};
  return Failure{ErrorCode::Internal,
                 diagnostics.take("conversion has failed without a reason")};
}

Result<LLVMCode> translate(ModuleOp module, DiagnosticText &diagnostics) {
  Stopwatch watch(lastTimings().translate);
  LLVMCode code;
  code.context = std::make_unique<llvm::LLVMContext>();
  code.machine = createTargetMachine();
  code.module = translateModuleToLLVMIR(module, *code.context, "kernel",
                                        /*disableVerification=*/true);
  if (!code.module)
    return Failure{ErrorCode::Internal,
                   diagnostics.take("translation has failed without a reason")};
  return code;
}

Result<LLVMCode> optimised(ModuleOp module, const Options &options,
                           DiagnosticText &diagnostics) {
  if (Result<> done = convert(module, options, diagnostics); !done)
    return done.error();
  Result<LLVMCode> code = translate(module, diagnostics);
  if (!code)
    return code.error();
  Stopwatch watch(lastTimings().optimise);
  optimise(*code->module, *code->machine);
  return code;
}

void fillSites(ModuleOp module, CodeOwner &owner, runtime::KernelCode &code) {
  auto sites = module->getAttrOfType<ArrayAttr>(conversion::sitesAttr);
  for (Attribute site : sites) {
    auto place = cast<FileLineColLoc>(site);
    code.sites.push_back(Loc(owner.keep(place.getFilename()), place.getLine(),
                             place.getColumn()));
  }
}

void fillTexts(ModuleOp module, runtime::KernelCode &code) {
  if (auto texts = module->getAttrOfType<ArrayAttr>(conversion::textsAttr))
    for (StringAttr text : texts.getAsRange<StringAttr>())
      code.texts.push_back(text.str());
}

void fillWatched(ModuleOp module, runtime::KernelCode &code) {
  if (auto watched = module->getAttrOfType<DenseI64ArrayAttr>(
          conversion::watchedParametersAttr))
    code.watched.assign(watched.asArrayRef().begin(),
                        watched.asArrayRef().end());
}

} // namespace

void enableChecks(PassManager &passes) {
#ifdef COSTATE_ASSERTIONS
  passes.enableVerifier(true);
#else
  passes.enableVerifier(false);
#endif
}

void registerTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

Result<> generate(ModuleOp module, StringRef name, const Options &options,
                  DiagnosticText &diagnostics, runtime::KernelCode &code) {
  std::string symbol = (name + ".entry").str();
  Result<LLVMCode> llvm = optimised(module, options, diagnostics);
  if (!llvm)
    return llvm.error();
  auto owner = std::make_shared<CodeOwner>();
  fillSites(module, *owner, code);
  fillTexts(module, code);
  fillWatched(module, code);
  Result<std::unique_ptr<llvm::MemoryBuffer>> object = [&] {
    Stopwatch watch(lastTimings().emit);
    return emitObject(*llvm->module, *llvm->machine);
  }();
  if (!object)
    return object.error();
  code.objectBytes = (*object)->getBufferSize();
  lastTimings().objectHash = llvm::xxh3_64bits((*object)->getBuffer());
  Stopwatch watch(lastTimings().load);
  Result<LoadedCode> loaded = load(std::move(*object), symbol);
  if (!loaded)
    return loaded.error();
  code.entry = loaded->entry;
  owner->code = std::move(loaded->owner);
  code.owner = std::move(owner);
  return {};
}

Result<std::string> printLLVM(ModuleOp module, const Options &options,
                              DiagnosticText &diagnostics) {
  Result<LLVMCode> code = optimised(module, options, diagnostics);
  if (!code)
    return code.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  code->module->print(stream, nullptr);
  return text;
}

} // namespace costate::compiler
