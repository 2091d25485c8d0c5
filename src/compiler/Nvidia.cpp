#include "compiler/Nvidia.h"

#include "base/DeviceSort.h"
#include "base/DeviceSymbol.h"
#include "base/DeviceTape.h"
#include "base/DeviceWords.h"
#include "compiler/Libclc.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace costate::compiler {
namespace {

constexpr const char *tripleName = "nvptx64-nvidia-cuda";
constexpr unsigned sharedSpace = 3;
constexpr const char *sortAttr = "costate-sort", *sumsAttr = "costate-sums";
/// What kernels of one function differ in.
constexpr const char *onlySharedName = "costate_device_tape_only_shared";
constexpr const char *drainsName = "costate_device_tape_drains";

/// Parameters of a kernel: 4 KiB, and since PTX 8.1 nearly 32.
constexpr unsigned wordsOfOldPtx = 512;
constexpr unsigned largestWords = 4095;

const llvm::Target *findTarget(std::string &error) {
  static const bool isInitialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)isInitialised;
  return TargetRegistry::lookupTarget(Triple(tripleName), error);
}

/// The 90 of `sm_90`; 0 for what is no chip, as `sm_90a`.
unsigned chipNumber(StringRef chip) {
  unsigned number = 0;
  if (!chip.consume_front("sm_") || chip.getAsInteger(10, number))
    return 0;
  return number;
}

/// The newest chip that is no newer than `chip`; 0 if there is none.
unsigned knownChip(const llvm::Target &target, StringRef chip) {
  std::unique_ptr<MCSubtargetInfo> info(
      target.createMCSubtargetInfo(Triple(tripleName), "", ""));
  unsigned wanted = chipNumber(chip), best = 0;
  for (const SubtargetSubTypeKV &known : info->getAllProcessorDescriptions())
    if (unsigned number = chipNumber(known.Key); number <= wanted)
      best = std::max(best, number);
  return best;
}

/// Chips after these need a newer PTX than 7.8, which LLVM then chooses itself.
StringRef ptxFeature(unsigned chip, unsigned words) {
  constexpr unsigned newestOfOldPtx = 90;
  if (chip > newestOfOldPtx)
    return "";
  return words > wordsOfOldPtx ? "+ptx81" : "+ptx78";
}

Result<std::unique_ptr<TargetMachine>> createMachine(const std::string &chip,
                                                     unsigned words) {
  std::string error;
  const llvm::Target *target = findTarget(error);
  if (!target)
    return Failure{ErrorCode::Internal, error};
  unsigned number = knownChip(*target, chip);
  if (number == 0)
    return Failure{ErrorCode::Internal,
                   "there is no NVIDIA chip `" + chip + "`"};
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      Triple(tripleName), "sm_" + utostr(number), ptxFeature(number, words),
      options, std::nullopt));
}

struct DeviceFunction {
  Function *function;
  unsigned words;
};

Result<SmallVector<DeviceFunction>> deviceFunctions(Module &module) {
  SmallVector<DeviceFunction> found;
  for (Function &function : module) {
    if (!function.hasFnAttribute(deviceWordsAttr))
      continue;
    uint64_t words = function.getFnAttributeAsParsedInteger(deviceWordsAttr);
    if (words > largestWords)
      return Failure{ErrorCode::Internal,
                     "`" + function.getName().str() + "` takes " +
                         std::to_string(words) + " words; NVIDIA GPUs take " +
                         std::to_string(largestWords) + " at most"};
    found.push_back({&function, static_cast<unsigned>(words)});
  }
  return found;
}

unsigned mostWords(ArrayRef<DeviceFunction> functions) {
  unsigned most = 0;
  for (const DeviceFunction &function : functions)
    most = std::max(most, function.words);
  return most;
}

/// Makes a module for the host one for the GPU.
void retarget(Module &module, const TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module)
    for (StringRef attribute :
         {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width"})
      function.removeFnAttr(attribute);
}

/// Only kernels are seen from outside.
void internalise(Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration())
      function.setLinkage(GlobalValue::InternalLinkage);
  for (GlobalVariable &global : module.globals())
    if (!global.isDeclaration())
      global.setLinkage(GlobalValue::InternalLinkage);
}

Value *readRegister(IRBuilder<> &builder, Intrinsic::ID id) {
  Value *value = builder.CreateIntrinsic(id, {});
  return builder.CreateZExt(value, builder.getInt64Ty());
}

/// A kernel with the words as its one parameter, by value.
Function *declareKernel(Module &module, const DeviceFunction &device,
                        const std::string &name) {
  LLVMContext &context = module.getContext();
  Type *word = Type::getInt64Ty(context);
  auto *words = ArrayType::get(word, std::max(device.words, 1u));
  auto *type = FunctionType::get(Type::getVoidTy(context),
                                 {PointerType::getUnqual(context)}, false);
  Function *kernel = Function::Create(type, GlobalValue::ExternalLinkage,
                                      deviceSymbol(name), module);
  kernel->setCallingConv(CallingConv::PTX_Kernel);
  kernel->addParamAttr(0, Attribute::getWithByValType(context, words));
  kernel->addParamAttr(0, Attribute::getWithAlignment(context, Align(8)));
  kernel->setDoesNotThrow();
  return kernel;
}

/// What a launch gives each block.
Constant *dynamicMemory(Module &module) {
  constexpr const char *name = "costate_block_memory";
  GlobalVariable *memory = module.getGlobalVariable(name);
  if (!memory) {
    auto *type = ArrayType::get(Type::getInt8Ty(module.getContext()), 0);
    memory = new GlobalVariable(
        module, type, false, GlobalValue::ExternalLinkage, nullptr, name,
        nullptr, GlobalValue::NotThreadLocal, sharedSpace);
    memory->setAlignment(Align(16));
  }
  return ConstantExpr::getAddrSpaceCast(
      memory, PointerType::getUnqual(module.getContext()));
}

/// What the threads of a block share; null for functions that need nothing.
Constant *blockMemory(Module &module, const Function &function) {
  LLVMContext &context = module.getContext();
  auto *pointer = PointerType::getUnqual(context);
  if (function.hasFnAttribute(deviceTilesAttr) ||
      function.hasFnAttribute(sortAttr))
    return dynamicMemory(module);
  if (!function.hasFnAttribute(sumsAttr))
    return ConstantPointerNull::get(pointer);
  auto *type = ArrayType::get(Type::getInt64Ty(context), sumMemory / 8);
  auto *memory = new GlobalVariable(
      module, type, false, GlobalValue::InternalLinkage, PoisonValue::get(type),
      "sums", nullptr, GlobalValue::NotThreadLocal, sharedSpace);
  return ConstantExpr::getAddrSpaceCast(memory, pointer);
}

/// Without a limit the assembler keeps few registers, and loads late.
void limitBlocks(Function &kernel, unsigned threads, unsigned blocks) {
  kernel.addFnAttr("nvvm.maxntid", utostr(threads));
  kernel.addFnAttr("nvvm.minctasm", utostr(blocks));
}

/// Blocks of a multiprocessor that a kernel with tiles shall leave room for.
constexpr unsigned blocksOfSweep = 3, blocksOfDrain = 1;

void addKernel(Module &module, const DeviceFunction &device,
               const std::string &name, unsigned least = blocksOfSweep) {
  Function *kernel = declareKernel(module, device, name);
  if (device.function->hasFnAttribute(deviceTilesAttr))
    limitBlocks(*kernel, TAPE_BLOCK_THREADS, least);
  if (device.function->hasFnAttribute(sortAttr))
    limitBlocks(*kernel, SortBlockThreads, SortBlocksOfProcessor);
  if (device.function->hasFnAttribute(sumsAttr))
    limitBlocks(*kernel, sumBlockThreads, 1);
  IRBuilder<> builder(BasicBlock::Create(module.getContext(), "", kernel));
  Value *block = readRegister(builder, Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  Value *size = readRegister(builder, Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value *lane = readRegister(builder, Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value *blocks = readRegister(builder, Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  Value *thread = builder.CreateNUWAdd(builder.CreateNUWMul(block, size), lane);
  Value *threads = builder.CreateNUWMul(blocks, size);
  Value *memory = blockMemory(module, *device.function);
  builder.CreateCall(device.function,
                     {kernel->getArg(0), thread, threads, memory});
  builder.CreateRetVoid();
  device.function->removeFnAttr(Attribute::NoInline);
  device.function->removeFnAttr(Attribute::OptimizeNone);
  device.function->addFnAttr(Attribute::AlwaysInline);
}

/// The one function of the module that `function` calls.
Function *bodyOf(Function &function) {
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<CallInst>(&instruction))
      if (Function *called = call->getCalledFunction();
          called && !called->isDeclaration())
        return called;
  return nullptr;
}

SmallVector<CallInst *> callsOf(Function &body, StringRef name) {
  SmallVector<CallInst *> calls;
  for (Instruction &instruction : instructions(body))
    if (auto *call = dyn_cast<CallInst>(&instruction))
      if (call->getCalledFunction() &&
          call->getCalledFunction()->getName() == name)
        calls.push_back(call);
  return calls;
}

void answer(Function &body, StringRef name, bool value) {
  for (CallInst *call : callsOf(body, name)) {
    call->replaceAllUsesWith(ConstantInt::get(call->getType(), value));
    call->eraseFromParent();
  }
}

/// A twin of a function that runs in tiles.
void addTwin(Module &module, const DeviceFunction &device, const char *suffix,
             bool onlyShared, bool drains) {
  ValueToValueMapTy bodyMap, map;
  Function *body = bodyOf(*device.function);
  Function *twinBody = CloneFunction(body, bodyMap);
  map[body] = twinBody;
  Function *twin = CloneFunction(device.function, map);
  answer(*twinBody, onlySharedName, onlyShared);
  answer(*twinBody, drainsName, drains);
  addKernel(module, {twin, device.words},
            device.function->getName().str() + suffix,
            drains ? blocksOfDrain : blocksOfSweep);
}

/// With tapes in shared memory; with code for what fits nowhere else; and, the
/// function itself, with neither.
void addTwins(Module &module, const DeviceFunction &device) {
  Function *body = bodyOf(*device.function);
  if (!body)
    return;
  addTwin(module, device, ".shared", true, false);
  if (!callsOf(*body, drainsName).empty())
    addTwin(module, device, ".drain", false, true);
  answer(*body, onlySharedName, false);
  answer(*body, drainsName, false);
}

/// Host code knows one scope, that of the system; other devices see nothing of
/// a launch before its end.
void narrowScopes(Module &module) {
  LLVMContext &context = module.getContext();
  SyncScope::ID device = context.getOrInsertSyncScopeID("device");
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (instruction.isAtomic())
        setAtomicSyncScopeID(&instruction, device);
}

void optimise(Module &module, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2)
      .run(module, modules);
}

/// Intrinsics for which NVPTX ends the process, gives up, or approximates.
bool hasNoCode(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::sin:
  case Intrinsic::cos:
  case Intrinsic::tan:
  case Intrinsic::asin:
  case Intrinsic::acos:
  case Intrinsic::atan:
  case Intrinsic::atan2:
  case Intrinsic::sinh:
  case Intrinsic::cosh:
  case Intrinsic::tanh:
  case Intrinsic::sincos:
  case Intrinsic::sincospi:
  case Intrinsic::exp:
  case Intrinsic::exp2:
  case Intrinsic::exp10:
  case Intrinsic::log:
  case Intrinsic::log2:
  case Intrinsic::log10:
  case Intrinsic::pow:
  case Intrinsic::powi:
  case Intrinsic::modf:
  case Intrinsic::lrint:
  case Intrinsic::llrint:
  case Intrinsic::lround:
  case Intrinsic::llround:
    return true;
  default:
    return false;
  }
}

/// `frem` is expanded to something that is not exact, wide atomics not at all.
bool hasNoCode(const Instruction &instruction) {
  constexpr unsigned widestAtomic = 64;
  if (instruction.getOpcode() == Instruction::FRem)
    return true;
  return instruction.isAtomic() &&
         (instruction.getType()->isIntegerTy() &&
          instruction.getType()->getIntegerBitWidth() > widestAtomic);
}

/// Functions of others, and intrinsics of other processors.
bool hasNoCode(const Function &function) {
  if (!function.isIntrinsic())
    return true;
  if (function.isTargetIntrinsic())
    return !function.getName().starts_with("llvm.nvvm.");
  return hasNoCode(function.getIntrinsicID());
}

/// What is left over that has no code on the GPU.
std::string leftOver(const Module &module) {
  SetVector<StringRef> names;
  for (const Function &function : module) {
    if (function.isDeclaration() && !function.use_empty() &&
        hasNoCode(function))
      names.insert(function.getName());
    for (const Instruction &instruction : instructions(function))
      if (hasNoCode(instruction))
        names.insert(instruction.getOpcodeName());
  }
  for (const GlobalVariable &global : module.globals())
    if (global.isDeclaration() && !global.use_empty() &&
        global.getAddressSpace() != sharedSpace)
      names.insert(global.getName());
  return join(names, "`, `");
}

/// Errors of the back end, which else would end the process.
class Collector final : public DiagnosticHandler {
public:
  explicit Collector(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    if (info.getSeverity() != DS_Error)
      return true;
    raw_string_ostream stream(errors);
    DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << "; ";
    return true;
  }

private:
  std::string &errors;
};

Result<std::string> print(Module &module, TargetMachine &machine) {
  SmallString<0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  CodeGenFileType::AssemblyFile))
    return Failure{ErrorCode::Internal, "this target emits no text"};
  passes.run(module);
  return text.str().str();
}

/// From kernels to text.
Result<std::string> finish(Module &module, TargetMachine &machine) {
#ifdef COSTATE_ASSERTIONS
  if (verifyModule(module, &errs()))
    return Failure{ErrorCode::Internal, "the code for the GPU is malformed"};
#endif
  if (Result<> linked = linkLibclc(module); !linked)
    return linked.error();
  narrowScopes(module);
  optimise(module, machine);
  if (std::string names = leftOver(module); !names.empty())
    return Failure{ErrorCode::Internal,
                   "there is no code for NVIDIA GPUs for `" + names + "`"};
  return print(module, machine);
}

/// Collects errors of a context while it lives.
class Watch {
public:
  explicit Watch(LLVMContext &context)
      : context(context), before(context.getDiagnosticHandler()) {
    context.setDiagnosticHandler(std::make_unique<Collector>(errors));
  }
  ~Watch() { context.setDiagnosticHandler(std::move(before)); }
  std::string errors;

private:
  LLVMContext &context;
  std::unique_ptr<DiagnosticHandler> before;
};

} // namespace

Result<std::string> emitPtx(Module &module, const std::string &chip) {
  Result<SmallVector<DeviceFunction>> functions = deviceFunctions(module);
  if (!functions)
    return functions.error();
  Result<std::unique_ptr<TargetMachine>> machine =
      createMachine(chip, mostWords(*functions));
  if (!machine)
    return machine.error();
  Watch watch(module.getContext());
  retarget(module, **machine);
  internalise(module);
  for (const DeviceFunction &function : *functions)
    if (function.function->hasFnAttribute(deviceTilesAttr))
      addTwins(module, function);
  for (const DeviceFunction &function : *functions)
    addKernel(module, function, function.function->getName().str());
  Result<std::string> text = finish(module, **machine);
  if (text && !watch.errors.empty())
    return Failure{ErrorCode::Internal,
                   "code for NVIDIA GPUs cannot be made: " + watch.errors};
  return text;
}

} // namespace costate::compiler
