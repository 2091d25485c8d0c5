#include "compiler/Compiler.h"

#include "autodiff/Differentiate.h"
#include "compiler/Codegen.h"
#include "compiler/Diagnostics.h"
#include "compiler/Facts.h"
#include "compiler/Jit.h"
#include "compiler/Pipelines.h"
#include "compiler/Registration.h"
#include "compiler/Target.h"
#include "compiler/Timings.h"
#include "conversion/KernelToLLVM/MathLibrary.h"
#include "lowering/Lower.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"

#include <mutex>

using namespace mlir;

namespace costate::compiler {

Timings &lastTimings() {
  thread_local Timings timings;
  return timings;
}

namespace {

/// A module with the one kernel to compile, and what the derivative asks for.
struct Derived {
  OwningOpRef<ModuleOp> module;
  ir::KernelOp kernel;
  std::optional<autodiff::Derivative> derivative;
};

class KernelProgram : public Program {
public:
  explicit KernelProgram(Options options)
      : options(options), context(MLIRContext::Threading::DISABLED),
        module(ModuleOp::create(UnknownLoc::get(&context))) {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerTranslations(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false);
  }

  Result<> lower(const syntax::Kernel &source) {
    DiagnosticText diagnostics(&context);
    Result<ir::KernelOp> lowered = lowering::lower(source, *module);
    if (!lowered)
      return lowered.error();
    kernel = *lowered;
    declared = source.arguments;
    return prepare(diagnostics);
  }

  Result<> parse(const std::string &text, const std::string &fileName,
                 const std::string &wanted) {
    DiagnosticText diagnostics(&context);
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, fileName),
                               llvm::SMLoc());
    auto file = parseSourceFile<ModuleOp>(sources, &context);
    if (!file)
      return Failure{ErrorCode::BadKernel,
                     diagnostics.take("the text cannot be parsed")};
    Result<ir::KernelOp> found = select(*file, fileName, wanted);
    if (!found)
      return found.error();
    kernel = *found;
    kernel->moveBefore(module->getBody(), module->getBody()->end());
    declared = argumentsOf(kernel);
    forgetOrigins();
    return prepare(diagnostics);
  }

  const std::string &name() const override { return kernelName; }
  const std::vector<syntax::Argument> &arguments() const override {
    return declared;
  }

  Result<runtime::KernelCode>
  compile(Mode mode, const std::vector<bool> &active) override {
    std::lock_guard lock(mutex);
    lastTimings() = Timings();
    DiagnosticText diagnostics(&context);
    Result<Derived> derived = derive(mode, active, diagnostics);
    if (!derived)
      return derived.error();
    runtime::KernelCode code = describe(*derived, active);
    if (Result<> done = generate(*derived->module, derived->kernel.getName(),
                                 options, diagnostics, code);
        !done)
      return done.error();
    return code;
  }

  Result<Interpretable> interpret(Mode mode, const std::vector<bool> &active,
                                  bool compiledFunctions) override {
    std::lock_guard lock(mutex);
    DiagnosticText diagnostics(&context);
    Result<Derived> derived = derive(mode, active, diagnostics);
    if (!derived)
      return derived.error();
    auto interpreter = ir::Interpreter::make(
        derived->kernel, compiledFunctions ? compiledFunction : nullptr);
    if (!interpreter)
      return interpreter.error();
    return Interpretable{describe(*derived, active), *interpreter};
  }

  Result<std::string> print(Mode mode, const std::vector<bool> &active,
                            bool llvm) override {
    std::lock_guard lock(mutex);
    DiagnosticText diagnostics(&context);
    Result<Derived> derived = derive(mode, active, diagnostics);
    if (!derived)
      return derived.error();
    if (llvm)
      return printLLVM(*derived->module, options, diagnostics);
    std::string text;
    llvm::raw_string_ostream stream(text);
    derived->kernel.print(stream);
    return text + "\n";
  }

private:
  /// Everything that is known of the code but the code.
  runtime::KernelCode describe(const Derived &derived,
                               const std::vector<bool> &active) {
    runtime::KernelCode code;
    code.name = kernelName;
    code.parameters = parametersOf(derived.kernel);
    code.growsTape = growsTape(derived.kernel);
    code.recordBytes = recordBytes(derived.kernel);
    code.accesses = accessesOf(kernel, active);
    if (derived.derivative)
      addNeeds(*derived.derivative, code.accesses);
    if (derived.derivative && derived.derivative->overwrite)
      code.overwritten = reasonOf(*derived.derivative->overwrite);
    return code;
  }

  std::string reasonOf(const autodiff::Overwrite &overwrite) {
    DiagnosticText diagnostics(&context);
    autodiff::refuse(overwrite);
    return diagnostics.take("");
  }

  static void *compiledFunction(std::string_view operation, bool isF64) {
    conversion::MathLibrary library(*conversion::parseMaths(host().maths));
    std::string name = library.function(operation, isF64);
    return name.empty() ? nullptr : findFunction(name);
  }

  static void addNeeds(const autodiff::Derivative &derivative,
                       std::vector<runtime::Access> &accesses) {
    for (auto [k, access] : llvm::enumerate(accesses)) {
      access.needed = derivative.needed[k];
      access.reloaded = derivative.reloaded[k];
      if (k < derivative.neededSections.size())
        access.neededSection = derivative.neededSections[k];
    }
  }

  /// In the text of a derivative, adjoints and tangents are arguments like
  /// others: whoever launches it passes them.
  void forgetOrigins() {
    for (unsigned k = 0; k < kernel.getNumArguments(); ++k)
      for (StringRef origin : {ir::adjointOfAttr, ir::tangentOfAttr})
        kernel.removeArgAttr(k, StringAttr::get(&context, origin));
  }

  static Result<ir::KernelOp> select(ModuleOp file, const std::string &fileName,
                                     const std::string &wanted) {
    auto kernels = llvm::to_vector(file.getOps<ir::KernelOp>());
    if (wanted.empty() && kernels.size() == 1)
      return kernels.front();
    std::string names;
    for (ir::KernelOp candidate : kernels) {
      if (candidate.getName() == wanted)
        return candidate;
      names += " `" + candidate.getName().str() + "`";
    }
    if (kernels.empty())
      return Failure{ErrorCode::BadKernel, fileName + ": there is no kernel"};
    if (wanted.empty())
      return Failure{ErrorCode::BadKernel,
                     fileName + ": name one of its kernels:" + names};
    return Failure{ErrorCode::BadKernel, fileName + ": there is no kernel `" +
                                             wanted + "`, only" + names};
  }

  Result<> run(ModuleOp module, function_ref<void(OpPassManager &)> fill,
               DiagnosticText &diagnostics) {
    PassManager passes(&context);
    enableChecks(passes);
    fill(passes);
    if (succeeded(passes.run(module)))
      return {};
    return Failure{ErrorCode::Internal,
                   diagnostics.take("a pass has failed without a reason")};
  }

  Result<> prepare(DiagnosticText &diagnostics) {
    kernelName = kernel.getName().str();
    return run(
        *module,
        [&](OpPassManager &passes) { addPrimalPasses(passes, host().hasFma); },
        diagnostics);
  }

  Result<Derived> derive(Mode mode, const std::vector<bool> &active,
                         DiagnosticText &diagnostics) {
    Stopwatch watch(lastTimings().derive);
    Derived derived{module->clone(), {}, {}};
    derived.kernel = *derived.module->getOps<ir::KernelOp>().begin();
    if (mode == Mode::Primal)
      return checked(std::move(derived), ErrorCode::BadKernel, diagnostics);
    llvm::SmallVector<bool> flags(active.begin(), active.end());
    flags.resize(declared.size());
    autodiff::Refusal refusal;
    auto derivative =
        mode == Mode::Tangent
            ? autodiff::differentiateForward(derived.kernel, flags, {}, refusal)
            : autodiff::differentiateReverse(derived.kernel, flags, refusal);
    if (failed(derivative))
      return Failure{refusal.code,
                     diagnostics.take("the kernel has no derivative")};
    if (mode == Mode::Recording) {
      ir::KernelOp recording =
          autodiff::recordVersions(derived.kernel, derivative->versions);
      derivative->kernel.erase();
      derived.kernel.erase();
      derived.kernel = recording;
      return checked(std::move(derived), ErrorCode::BadKernel, diagnostics);
    }
    derived.kernel.erase();
    derived.kernel = derivative->kernel;
    derived.derivative = *derivative;
    if (Result<> done = run(*derived.module, addDerivativePasses, diagnostics);
        !done)
      return done.error();
    return checked(std::move(derived), ErrorCode::CannotReplay, diagnostics);
  }

  Result<Derived> checked(Derived derived, ErrorCode code,
                          DiagnosticText &diagnostics) {
    if (options.deterministic &&
        failed(autodiff::checkLateAdditions(derived.kernel)))
      return Failure{code, diagnostics.take("additions are made too late")};
    return derived;
  }

  Options options;
  MLIRContext context;
  OwningOpRef<ModuleOp> module; ///< holds the primal, and nothing else
  ir::KernelOp kernel;
  std::string kernelName;
  std::vector<syntax::Argument> declared;
  std::mutex mutex;
};

} // namespace

Result<std::shared_ptr<Program>> Program::lower(const syntax::Kernel &kernel,
                                                Options options) {
  auto program = std::make_shared<KernelProgram>(options);
  if (Result<> done = program->lower(kernel); !done)
    return done.error();
  return std::shared_ptr<Program>(program);
}

Result<std::shared_ptr<Program>> Program::parse(const std::string &text,
                                                const std::string &fileName,
                                                const std::string &kernel,
                                                Options options) {
  auto program = std::make_shared<KernelProgram>(options);
  if (Result<> done = program->parse(text, fileName, kernel); !done)
    return done.error();
  return std::shared_ptr<Program>(program);
}

} // namespace costate::compiler
