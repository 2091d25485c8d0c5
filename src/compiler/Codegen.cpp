#include "compiler/Codegen.h"

#include "base/CommonSums.h"
#include "compiler/Diagnostics.h"
#include "compiler/Groups.h"
#include "compiler/Target.h"
#include "compiler/targets/TargetBackend.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Device.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <cstdlib>
#include <fstream>
#include <functional>

using namespace mlir;

namespace costate::compiler {
namespace {

/// Of GPUs whose blocks keep sums.
size_t blockBytes(bool addsInBlock, const TargetBackend &target) {
  return addsInBlock && target.gpu()->addsInBlocks ? costateCommonBytes : 0;
}

struct LLVMCode {
  std::unique_ptr<llvm::LLVMContext> context;
  TargetMachinePointer machine = borrowTargetMachine();
  std::unique_ptr<llvm::Module> module;
  std::string image; ///< of a GPU
};

/// What the private arrays of a thread may take together: stacks are small.
constexpr int64_t mostLocalBytes = 1 << 18;

Result<> checkLocals(ModuleOp module, DiagnosticText &diagnostics) {
  llvm::DenseMap<Operation *, int64_t> bytes;
  int64_t called = 0; // by functions, which any part may call
  WalkResult result = module.walk([&](ir::LocalOp local) {
    bool isCalled = local->getParentOfType<func::FuncOp>() != nullptr;
    int64_t &sum =
        isCalled ? called : bytes[local->getParentOfType<ir::RangeOp>()];
    sum += local.getType().bytes();
    if (sum + (isCalled ? 0 : called) <= mostLocalBytes)
      return WalkResult::advance();
    InFlightDiagnostic error = local.emitError(
        "the private arrays of this kernel, with those of its derivative, take "
        "more than 256 KiB together");
    error.attachNote()
        << "make them smaller, or use an array with an index of the range";
    return WalkResult::interrupt();
  });
  if (!result.wasInterrupted())
    return {};
  return Failure{ErrorCode::BadKernel, diagnostics.take("")};
}

Result<> convert(ModuleOp module, const Options &options,
                 const TargetBackend &target, DiagnosticText &diagnostics) {
  if (Result<> checked = checkLocals(module, diagnostics); !checked)
    return checked;
  if (Result<> checked = checkOperations(module, target, diagnostics); !checked)
    return checked;
  PassManager passes(module.getContext());
  enableChecks(passes);
  target.addPasses(passes, options);
  if (succeeded(passes.run(module)))
    return {};
  return Failure{ErrorCode::Internal,
                 diagnostics.take("conversion has failed without a reason")};
}

Result<LLVMCode> translate(ModuleOp module, DiagnosticText &diagnostics) {
  LLVMCode code;
  code.context = std::make_unique<llvm::LLVMContext>();
  // Without it, i64 is aligned to 4 bytes, and GPUs load it in halves.
  module->setAttr(
      LLVM::LLVMDialect::getDataLayoutAttrName(),
      StringAttr::get(
          module.getContext(),
          code.machine->createDataLayout().getStringRepresentation()));
  code.module = translateModuleToLLVMIR(module, *code.context, "kernel",
                                        /*disableVerification=*/true);
  if (!code.module)
    return Failure{ErrorCode::Internal,
                   diagnostics.take("translation has failed without a reason")};
  return code;
}

/// Takes everything but the functions for which `isKept` holds, and what they
/// call, out of `module`.
void keepOnly(llvm::Module &module,
              llvm::function_ref<bool(const llvm::Function &)> isKept) {
  llvm::SmallVector<llvm::Function *> dropped;
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && !isKept(function))
      dropped.push_back(&function);
  for (llvm::Function *function : dropped)
    function->dropAllReferences();
  for (llvm::Function *function : dropped) {
    function->replaceAllUsesWith(llvm::PoisonValue::get(function->getType()));
    function->eraseFromParent();
  }
}

/// For those who want to read it: COSTATE_KEEP_CODE names a folder. Kernels of
/// one name have files of their own.
void keepImage(const std::string &symbol, const std::string &image,
               const char *extension) {
  const char *folder = std::getenv("COSTATE_KEEP_CODE");
  if (!folder || !*folder)
    return;
  std::string number = llvm::utohexstr(llvm::xxh3_64bits(image));
  std::ofstream(std::string(folder) + "/" + symbol + "-" + number + extension,
                std::ios::binary)
      << image;
}

/// Takes the device code out of `llvm`, which keeps the entry `symbol`.
Result<Image> emitDevice(LLVMCode &llvm, const std::string &symbol,
                         const TargetBackend &target) {
  std::unique_ptr<llvm::Module> device = llvm::CloneModule(*llvm.module);
  auto isEntry = [&](const llvm::Function &function) {
    return function.getName() == symbol;
  };
  keepOnly(*llvm.module, isEntry);
  keepOnly(*device, std::not_fn(isEntry));
  return target.emit(std::move(device));
}

Result<LLVMCode> optimised(ModuleOp module, const std::string &entry,
                           const TargetBackend &target,
                           DiagnosticText &diagnostics) {
  Result<LLVMCode> code = translate(module, diagnostics);
  if (!code)
    return code.error();
  if (target.hasImage()) {
    Result<Image> image = emitDevice(*code, entry, target);
    if (!image)
      return image.error();
    keepImage(entry, image->bytes, image->extension);
    code->image = std::move(image->bytes);
  }
  if (Result<> done = optimise(*code->module, *code->machine); !done)
    return done.error();
  target.finish(*code->module);
  return code;
}

void fillSites(ModuleOp module, ObjectCode &object) {
  auto sites = module->getAttrOfType<ArrayAttr>(conversion::sitesAttr);
  for (Attribute site : sites) {
    auto place = cast<FileLineColLoc>(site);
    object.code.sites.push_back(
        Loc(object.files->keep(place.getFilename().getValue()), place.getLine(),
            place.getColumn()));
  }
}

void fillTexts(ModuleOp module, runtime::KernelCode &code) {
  if (auto texts = module->getAttrOfType<ArrayAttr>(conversion::textsAttr))
    for (StringAttr text : texts.getAsRange<StringAttr>())
      code.texts.push_back(text.str());
}

/// Of how a range runs: in which order its lanes come, or why it has none.
std::string remarkOf(LLVM::LLVMFuncOp function) {
  if (function->hasAttr(conversion::orderedLanesAttr))
    return "in the order of their lengths, if these differ";
  auto obstacle = function->getAttrOfType<StringAttr>(conversion::obstacleAttr);
  bool hasLanes = function->hasAttr(conversion::vectorLanesAttr);
  return obstacle && !hasLanes ? obstacle.str() : "";
}

void fillRanges(ModuleOp module, runtime::KernelCode &code) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto lanes =
        function->getAttrOfType<IntegerAttr>(conversion::vectorLanesAttr);
    auto site = function->getAttrOfType<IntegerAttr>(conversion::rangeSiteAttr);
    auto additions =
        function->getAttrOfType<StringAttr>(conversion::additionsAttr);
    std::string remark = remarkOf(function);
    if (site && (lanes || !remark.empty()))
      code.ranges.push_back({site.getInt(), lanes ? lanes.getInt() : 0, remark,
                             additions ? additions.str() : ""});
  }
}

void fillWatched(ModuleOp module, runtime::KernelCode &code) {
  if (auto watched = module->getAttrOfType<DenseI64ArrayAttr>(
          conversion::watchedParametersAttr))
    code.watched.assign(watched.asArrayRef().begin(),
                        watched.asArrayRef().end());
}

/// Whether no launch begins with one that only looks how large tapes get.
bool knowNeeds(ArrayRef<runtime::gpu::DeviceFunction> functions,
               ModuleOp module) {
  auto isKnown = [](const runtime::gpu::DeviceFunction &function) {
    return !function.pushes || function.needWord >= 0 ||
           function.measuredInPlace;
  };
  return !module->hasAttr(conversion::readsBackAttr) &&
         llvm::all_of(functions, isKnown);
}

void nameVariants(runtime::gpu::DeviceFunction &function, bool drains,
                  const TargetBackend &target) {
  const std::string &symbol = function.symbol;
  bool hasVariants = target.hasImage();
  bool hasDrain = drains || (function.tiles && target.gpu()->knowsPlaces);
  function.sharedSymbol =
      symbol + (function.tiles && hasVariants ? ".shared" : "");
  function.drainSymbol = symbol + (hasDrain && hasVariants ? ".drain" : "");
  if (function.sorts)
    function.sortSymbol = symbol + (hasVariants ? ".sort" : "");
}

/// What sizes of tapes follow from.
void describeCounting(ModuleOp module, runtime::gpu::DeviceCode &code) {
  auto numbers = [&](StringRef key) {
    auto of = module->getAttrOfType<DenseI64ArrayAttr>(key).asArrayRef();
    return std::vector<int64_t>(of.begin(), of.end());
  };
  auto flag = [&](StringRef key) {
    return module->getAttrOfType<BoolAttr>(key).getValue();
  };
  code.countedFrom = numbers("costate.counted_from");
  code.countedSlots = numbers("costate.counted_slots");
  code.countsFromAll = flag("costate.counts_from_all");
  code.countsWritten = flag("costate.counts_written");
}

runtime::gpu::DeviceFunction described(ir::DeviceFunctionOp op,
                                       const TargetBackend &target) {
  auto number = [](uint64_t bits) { return static_cast<int64_t>(bits); };
  runtime::gpu::DeviceFunction function{
      .symbol = op.getSymbol().str(),
      .measure = op.getMeasure().str(),
      .pushes = op.getPushes(),
      .counts = op.getCounts(),
      .dryRun = op.getDryRun(),
      .obstacle = op.getObstacle().str(),
      .needWord = number(op.getNeedWord()),
      .budgetWord = number(op.getBudgetWord()),
      .measuredInPlace = op.getMeasuredInPlace(),
      .serial = op.getSerial(),
      .afterPivot = op.getAfterPivot(),
      .effects = op.getEffects(),
      .ordered = op.getOrdered(),
      .collective = op.getCollective(),
      .blockBytes = blockBytes(op.getAddsInBlock(), target),
      .addsUp = op.getAddsUp(),
      .accumulates = op.getAccumulates(),
      .tiles = op.getTiles(),
      .expensive = op.getExpensive(),
      .moderatelyExpensive = op.getModeratelyExpensive(),
      .iterationRows = number(op.getIterationRows()),
      .sums = number(op.getSums()),
      .least = op.getLeast(),
      .sumSlot = number(op.getSumSlot()),
      .oneSum = op.getOneSum(),
      .words = number(op.getWords()),
      .site = number(op.getSite()),
      .tapeSite = number(op.getTapeSite()),
      .blockDim = number(op.getBlockDim()),
      .hasBlocks = op.getHasBlocks(),
      .sharedBytes = number(op.getSharedBytes())};
  if (auto costs = op.getSortCosts()) {
    function.sorts = true;
    function.sortCosts = {(*costs)[0], (*costs)[1], (*costs)[2]};
  }
  nameVariants(function, op.getDrains(), target);
  return function;
}

/// What `module` says of its device functions, which its code does not need.
std::shared_ptr<runtime::gpu::DeviceCode>
takeDescriptions(ModuleOp module, const TargetBackend &target) {
  auto code = std::make_shared<runtime::gpu::DeviceCode>();
  for (auto op :
       llvm::make_early_inc_range(module.getOps<ir::DeviceFunctionOp>())) {
    code->functions.push_back(described(op, target));
    code->pushes |= op.getPushes();
    op.erase();
  }
  code->knowsNeeds = knowNeeds(code->functions, module);
  describeCounting(module, *code);
  code->frameSlots =
      module->getAttrOfType<IntegerAttr>("costate.frame_slots").getInt();
  code->mayFail = module->hasAttr(conversion::mayFailAttr);
  code->prints = module->hasAttr(conversion::printsAttr);
  return code;
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
                  const std::string &target, DiagnosticText &diagnostics,
                  ObjectCode &object) {
  object.symbol = (name + ".entry").str();
  auto backend = findTarget(target);
  if (!backend)
    return backend.error();
  if (auto done = convert(module, options, **backend, diagnostics); !done)
    return done.error();
  if ((*backend)->gpu())
    object.device = takeDescriptions(module, **backend);
  Result<LLVMCode> llvm =
      optimised(module, object.symbol, **backend, diagnostics);
  if (!llvm)
    return llvm.error();
  fillSites(module, object);
  fillTexts(module, object.code);
  fillWatched(module, object.code);
  fillRanges(module, object.code);
  if (object.device)
    object.device->image = std::move(llvm->image);
  Result<std::string> bytes = emitObject(*llvm->module, *llvm->machine);
  if (!bytes)
    return bytes.error();
  object.object = std::move(*bytes);
  object.code.objectBytes = object.object.size();
  return {};
}

Result<std::string> printLLVM(ModuleOp module, const Options &options,
                              DiagnosticText &diagnostics) {
  auto backend = findTarget(Derivation().target);
  if (!backend)
    return backend.error();
  if (auto done = convert(module, options, **backend, diagnostics); !done)
    return done.error();
  Result<LLVMCode> code = optimised(module, "", **backend, diagnostics);
  if (!code)
    return code.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  code->module->print(stream, nullptr);
  return text;
}

} // namespace costate::compiler
