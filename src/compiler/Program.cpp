#include "compiler/SourceProgram.h"

#include "autodiff/Differentiate.h"
#include "base/Fork.h"
#include "compiler/Calls.h"
#include "compiler/Codegen.h"
#include "compiler/CompilerMemory.h"
#include "compiler/Costs.h"
#include "compiler/Diagnostics.h"
#include "compiler/Facts.h"
#include "compiler/Jit.h"
#include "compiler/Pipelines.h"
#include "compiler/Registration.h"
#include "compiler/Target.h"
#include "compiler/targets/Targets.h"
#include "conversion/KernelToLLVM/MathLibrary.h"
#include "ir/Functions.h"
#include "ir/Plan.h"
#include "ir/Registration.h"
#include "ir/Source.h"
#include "ir/Text.h"
#include "lowering/Lower.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"

#include <mutex>

using namespace mlir;

namespace costate::compiler {

namespace {

/// A module with the one kernel to compile, and what it asks for.
struct Derived {
  OwningOpRef<ModuleOp> module;
  ir::KernelOp kernel;
  std::optional<autodiff::Derivative> gradient;
  std::vector<runtime::Parameter> missing;
};

/// How loops of work items with `checkpoints` run again on a GPU.
enum class Repeats { InTiles, Cut };

class KernelProgram final : public SourceProgram {
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
    Result<ir::KernelOp> lowered =
        lowering::lower(source, *module, options.debug);
    if (!lowered)
      return lowered.error();
    kernel = *lowered;
    declared = source.arguments;
    return prepare(diagnostics);
  }

  Result<> parse(const std::string &text, const std::string &fileName,
                 const std::string &wanted) {
    if (auto fault = ir::faultOf(text))
      return Failure{ErrorCode::BadKernel, fileName + ":" +
                                               std::to_string(fault->line) +
                                               ": error: " + fault->text};
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
    if (failed(ir::verifyOperations(*file)) ||
        failed(ir::verifyFunctions(*file)))
      return Failure{ErrorCode::BadKernel, diagnostics.take("")};
    kernel = *found;
    for (auto function :
         llvm::make_early_inc_range(file->getOps<func::FuncOp>()))
      function->moveBefore(module->getBody(), module->getBody()->end());
    kernel->moveBefore(module->getBody(), module->getBody()->end());
    declared = argumentsOf(kernel);
    tape::erasePlans(*module);
    forgetOrigins();
    replaceFunctions();
    return prepare(diagnostics);
  }

  const std::string &name() const override { return kernelName; }
  const std::vector<syntax::Argument> &arguments() const override {
    return declared;
  }

  Result<ObjectCode> build(const Derivation &derivation) override {
    std::lock_guard lock(mutex);
    if (!hasMemoryToCompile())
      return noMemoryToCompile();
    try {
      return buildNow(derivation);
    } catch (const std::bad_alloc &) {
      return noMemoryToCompile();
    }
  }

  /// Loops that tiles were to run again are cut where the tape is in no tiles.
  Result<ObjectCode> buildNow(const Derivation &derivation) {
    Result<ObjectCode> object = buildNow(derivation, Repeats::InTiles);
    bool isRight = !object || !leavesWhole(*object);
    return isRight ? std::move(object) : buildNow(derivation, Repeats::Cut);
  }

  static bool leavesWhole(const ObjectCode &object) {
    return object.device &&
           llvm::any_of(object.code.lines,
                        [](const auto &line) { return line.runsInTiles; }) &&
           llvm::any_of(object.device->functions, [](const auto &function) {
             return !function.serial && function.pushes;
           });
  }

  Result<ObjectCode> buildNow(const Derivation &derivation, Repeats repeats) {
    DiagnosticText diagnostics(&context);
    Result<Derived> derived = derive(derivation, diagnostics, repeats);
    if (!derived)
      return derived.error();
    ObjectCode object;
    object.code = describe(*derived, derivation);
    if (derivation.mode == Mode::Gradient)
      addPassedOn(derivation, object);
    useCalls(*derived, derivation);
    Options own = options;
    own.lanes = derivation.lanes ? derivation.lanes : options.lanes;
    if (Result<> done = generate(*derived->module, derived->kernel.getName(),
                                 own, derivation.target, diagnostics, object);
        !done)
      return done.error();
    return object;
  }

  Result<Interpretable> interpret(const Derivation &derivation,
                                  bool compiledFunctions) override {
    std::lock_guard lock(mutex);
    DiagnosticText diagnostics(&context);
    Result<Derived> derived = derive(derivation, diagnostics);
    if (!derived)
      return derived.error();
    auto interpreter = interpreter::Interpreter::make(
        derived->kernel, compiledFunctions ? compiledFunction : nullptr);
    if (!interpreter)
      return interpreter.error();
    return Interpretable{describe(*derived, derivation), *interpreter};
  }

  Result<std::string> print(const Derivation &derivation, bool llvm) override {
    std::lock_guard lock(mutex);
    DiagnosticText diagnostics(&context);
    Result<Derived> derived = derive(derivation, diagnostics);
    if (!derived)
      return derived.error();
    useCalls(*derived, derivation);
    if (llvm)
      return printLLVM(*derived->module, options, diagnostics);
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (Operation &op : *derived->module->getBody()) {
      op.print(stream);
      stream << "\n";
    }
    return text;
  }

private:
  /// Code of the primal calls functions; whatever is derived or checked knows
  /// them as parts of the kernel.
  void useCalls(Derived &derived, const Derivation &derivation) {
    if (!called || derivation.mode != Mode::Primal || derivation.order)
      return;
    derived.module = called->clone();
    derived.kernel = *derived.module->getOps<ir::KernelOp>().begin();
  }

  /// Everything that is known of the code but the code.
  runtime::KernelCode describe(const Derived &derived,
                               const Derivation &derivation) {
    runtime::KernelCode code;
    code.name = kernelName;
    code.parameters = parametersOf(derived.kernel);
    for (BlockArgument argument : kernel.getBody()->getArguments())
      code.arguments.push_back(ir::argumentText(argument));
    for (const syntax::Argument &argument : declared)
      code.componentDims.push_back(!argument.form.count ? -1
                                   : argument.form.layout == SoA
                                       ? 0
                                       : argument.rank - 1);
    code.growsTape = growsTape(derived.kernel);
    code.recordBytes = recordBytes(derived.kernel);
    code.leftToChance = leftToChance(derived.kernel);
    code.lines = lineCosts(derived.kernel);
    code.fitsBudget = fitsBudget(derived.kernel);
    code.accesses = accessesOf(kernel, derivation.mode == Mode::Primal
                                           ? derivation.tangent
                                           : derivation.adjoint);
    if (called) // gradients are derived from it
      addAccesses(*called->getOps<ir::KernelOp>().begin(), code.accesses);
    code.missing = derived.missing;
    if (derived.gradient) {
      addNeeds(*derived.gradient, code.accesses);
      addSections(*derived.gradient, code);
    }
    if (derived.gradient && derived.gradient->overwrite)
      code.overwritten = reasonOf(*derived.gradient->overwrite);
    return code;
  }

  void addPassedOn(const Derivation &derivation, ObjectCode &object) {
    auto loads = autodiff::passedOnLoads(kernel, flagsOf(derivation));
    for (auto [access, load] : llvm::zip(object.code.accesses, loads))
      if (FileLineColLoc place = load ? ir::sourceOf(*load) : FileLineColLoc())
        access.passedOn =
            Loc(object.files->keep(place.getFilename().getValue()),
                place.getLine(), place.getColumn());
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

  static void addSections(const autodiff::Derivative &derivative,
                          runtime::KernelCode &code) {
    for (runtime::Parameter parameter : code.parameters) {
      code.sections.emplace_back();
      for (auto [version, section] :
           llvm::zip(derivative.versions, derivative.versionSections))
        if (parameter.role == runtime::Parameter::Role::Version &&
            version.argument == parameter.argument &&
            version.part == parameter.part)
          code.sections.back() = section;
    }
  }

  /// In the text of a derivative, adjoints and tangents are arguments like
  /// others: whoever launches it passes them.
  void forgetOrigins() {
    for (unsigned k = 0; k < kernel.getNumArguments(); ++k)
      for (StringRef origin :
           {ir::adjointOfAttr, ir::tangentOfAttr, ir::versionOfAttr,
            ir::partAttr, ir::scratchOfAttr, ir::ownersOfAttr})
        kernel.removeArgAttr(k, StringAttr::get(&context, origin));
  }

  /// Upstream's functions fold with those of the host, whose bits are others.
  void replaceFunctions() {
    module->walk([&](Operation *op) {
      StringRef name = op->getName().getStringRef();
      if (!name.consume_front("math."))
        return;
      auto own =
          RegisteredOperationName::lookup(("costate." + name).str(), &context);
      if (!own || !own->hasTrait<ir::OpTrait::IsFunction>())
        return;
      OpBuilder b(op);
      OperationState state(op->getLoc(), *own, op->getOperands(),
                           op->getResultTypes());
      op->replaceAllUsesWith(b.create(state));
      op->erase();
    });
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
    auto first = [&](OpPassManager &passes) {
      addFirstPasses(passes, options.contract && host().hasFma,
                     /*keepRanges=*/options.debug || options.findNan);
    };
    if (Result<> done = run(*module, first, diagnostics); !done)
      return done;
    if (Result<> done = prepareCalls(diagnostics); !done)
      return done;
    auto last = [&](OpPassManager &passes) {
      addUpdatePasses(passes);
      if (options.findNan)
        addNamingPasses(passes);
    };
    return run(*module, last, diagnostics);
  }

  /// Functions become part of the kernel, beside one that still calls them.
  Result<> prepareCalls(DiagnosticText &diagnostics) {
    if (module->getOps<func::FuncOp>().empty())
      return {};
    OwningOpRef<ModuleOp> calling(module->clone());
    ir::inlineCalls(kernel);
    ir::eraseUncalled(*module);
    if (failed(verify(kernel)))
      return Failure{ErrorCode::BadKernel, diagnostics.take("")};
    if (Result<> done = run(*module, addDerivativePasses, diagnostics); !done)
      return done;
    if (options.debug || options.findNan ||
        !keepCalls(*calling, kernel, options.calls))
      return {};
    called = std::move(calling);
    return run(*called, addUpdatePasses, diagnostics);
  }

  Result<Derived> derive(const Derivation &derivation,
                         DiagnosticText &diagnostics,
                         Repeats repeats = Repeats::Cut) {
    bool reverses = derivation.mode != Mode::Primal;
    Derived derived{
        (reverses && called ? called : module)->clone(), {}, {}, {}};
    derived.kernel = *derived.module->getOps<ir::KernelOp>().begin();
    ErrorCode code = ErrorCode::BadKernel;
    if (derivation.mode != Mode::Primal) {
      if (derivation.mode == Mode::Gradient || derivation.mode == Mode::Check)
        code = ErrorCode::CannotReplay;
      if (Result<> done =
              takeGradient(derived, derivation, diagnostics, repeats);
          !done)
        return done.error();
    }
    if (derivation.order > 0) {
      code = ErrorCode::CannotReplay;
      if (Result<> done = takeTangents(derived, derivation, diagnostics); !done)
        return done.error();
    }
    return checked(std::move(derived), code, diagnostics);
  }

  /// Debug kernels on the CPU look for races.
  autodiff::Owners ownersFor(const std::string &target) const {
    return options.debug && !runsOnGpu(target) ? autodiff::Owners::Watched
                                               : autodiff::Owners::Asked;
  }

  /// By argument: whether it has an adjoint.
  llvm::SmallVector<bool> flagsOf(const Derivation &derivation) const {
    llvm::SmallVector<bool> flags(derivation.adjoint.begin(),
                                  derivation.adjoint.end());
    flags.resize(declared.size());
    return flags;
  }

  sizing::Target targetOf(const Derivation &derivation) const {
    using sizing::Target;
    if (!runsOnGpu(derivation.target))
      return Target::Cpu;
    return options.fastMath ? Target::GpuFastMath : Target::Gpu;
  }

  /// With `fast_math` sums are rounded otherwise where other code is beside
  /// them.
  autodiff::Checks checksOf(const Derivation &derivation) const {
    using autodiff::Checks;
    if (derivation.mode != Mode::Check)
      return Checks::None;
    return options.fastMath ? Checks::UpToRounding : Checks::OfBits;
  }

  /// The gradient, or what records the versions that it needs.
  Result<> takeGradient(Derived &derived, const Derivation &derivation,
                        DiagnosticText &diagnostics, Repeats repeats) {
    llvm::SmallVector<bool> flags = flagsOf(derivation);
    if (options.fastMath &&
        failed(autodiff::checkExactExtrema(derived.kernel, flags)))
      return Failure{ErrorCode::NotDifferentiable, diagnostics.take("")};
    autodiff::Refusal refusal;
    bool isGpu = runsOnGpu(derivation.target);
    auto gradient = autodiff::differentiateReverse(
        derived.kernel, flags, refusal, ownersFor(derivation.target),
        {.measured = isGpu,
         .tiles = isGpu && derivation.mode == Mode::Gradient &&
                  repeats == Repeats::InTiles && !derivation.byBudget,
         .byBudget = derivation.byBudget},
        {.costs = sizing::Costs(targetOf(derivation))}, checksOf(derivation),
        derivation.fromMemory ? autodiff::Unkept::FromMemory
                              : autodiff::Unkept::Refused);
    if (succeeded(gradient) && derivation.mode == Mode::Recording) {
      gradient->kernel.erase();
      ir::KernelOp recording =
          autodiff::recordVersions(derived.kernel, gradient->versions);
      derived.kernel.erase();
      derived.kernel = recording;
      return {};
    }
    if (succeeded(gradient) && derivation.mode == Mode::Check)
      return useCheck(derived, *gradient, diagnostics);
    if (succeeded(gradient))
      derived.gradient = *gradient;
    return replace(derived, gradient, flags, refusal, diagnostics,
                   [](runtime::Parameter parameter) {
                     parameter.role = runtime::Parameter::Role::Adjoint;
                     return parameter;
                   });
  }

  Result<> useCheck(Derived &derived, const autodiff::Derivative &gradient,
                    DiagnosticText &diagnostics) {
    if (!gradient.check)
      return Failure{ErrorCode::CannotReplay,
                     "what the kernel does cannot be compared with memory"};
    ir::KernelOp(gradient.kernel).erase();
    derived.kernel.erase();
    derived.kernel = gradient.check;
    ir::eraseUncalled(*derived.module);
    return run(*derived.module, addDerivativePasses, diagnostics);
  }

  Result<> takeTangents(Derived &derived, const Derivation &derivation,
                        DiagnosticText &diagnostics) {
    llvm::SmallVector<bool> flags;
    for (auto [parameter, type] : llvm::zip(
             parametersOf(derived.kernel), derived.kernel.getArgumentTypes())) {
      auto array = dyn_cast<ir::ArrayType>(type);
      flags.push_back(array && array.isFloat() &&
                      derivation.tangent[parameter.argument]);
    }
    autodiff::Refusal refusal;
    auto tangent = autodiff::differentiateForward(
        derived.kernel, flags, {derivation.order, derivation.directions},
        refusal);
    return replace(derived, tangent, flags, refusal, diagnostics,
                   [](runtime::Parameter parameter) {
                     ++parameter.order;
                     return parameter;
                   });
  }

  /// Puts `derivative` in the place of the kernel. `companion`: what a written
  /// array without flag would need for its derivatives.
  Result<>
  replace(Derived &derived, FailureOr<autodiff::Derivative> derivative,
          ArrayRef<bool> flags, const autodiff::Refusal &refusal,
          DiagnosticText &diagnostics,
          function_ref<runtime::Parameter(runtime::Parameter)> companion) {
    if (failed(derivative))
      return Failure{refusal.code,
                     diagnostics.take("the kernel has no derivative")};
    auto writes = autodiff::activeWrites(derived.kernel, flags);
    for (auto [k, parameter] : llvm::enumerate(parametersOf(derived.kernel)))
      if (writes[k] && !flags[k])
        derived.missing.push_back(companion(parameter));
    derived.kernel.erase();
    derived.kernel = derivative->kernel;
    ir::eraseUncalled(*derived.module);
    return run(*derived.module, addDerivativePasses, diagnostics);
  }

  Result<Derived> checked(Derived derived, ErrorCode code,
                          DiagnosticText &diagnostics) {
    ir::eraseUncalled(*derived.module);
    if (options.deterministic &&
        (failed(autodiff::checkLateAdditions(derived.kernel)) ||
         failed(autodiff::checkFixedFetches(derived.kernel))))
      return Failure{code, diagnostics.take("additions are made too late")};
    return derived;
  }

  Options options;
  MLIRContext context;
  OwningOpRef<ModuleOp> module; ///< holds the primal, and nothing else
  OwningOpRef<ModuleOp> called; ///< the primal and functions, if it calls any
  ir::KernelOp kernel;
  std::string kernelName;
  std::vector<syntax::Argument> declared;
  Mutex mutex;
};

} // namespace

Result<runtime::KernelCode>
SourceProgram::compile(const Derivation &derivation) {
  Result<ObjectCode> object = build(derivation);
  if (!object)
    return object.error();
  return link(std::move(*object));
}

Result<std::shared_ptr<SourceProgram>>
SourceProgram::lower(const syntax::Kernel &kernel, Options options) try {
  throwWhenMemoryEnds();
  auto program = std::make_shared<KernelProgram>(options);
  if (Result<> done = program->lower(kernel); !done)
    return done.error();
  return std::shared_ptr<SourceProgram>(program);
} catch (const std::bad_alloc &) {
  return noMemoryToCompile();
}

Result<std::shared_ptr<SourceProgram>>
SourceProgram::parse(const std::string &text, const std::string &fileName,
                     const std::string &kernel, Options options) try {
  throwWhenMemoryEnds();
  auto program = std::make_shared<KernelProgram>(options);
  if (Result<> done = program->parse(text, fileName, kernel); !done)
    return done.error();
  return std::shared_ptr<SourceProgram>(program);
} catch (const std::bad_alloc &) {
  return noMemoryToCompile();
}

} // namespace costate::compiler
