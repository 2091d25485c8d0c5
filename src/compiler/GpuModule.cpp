#include "compiler/GpuModule.h"

#include "base/DeviceSymbol.h"
#include "base/DeviceTape.h"
#include "base/DeviceWords.h"
#include "compiler/Libclc.h"
#include "conversion/LLVMPasses.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace costate::compiler {
namespace {

constexpr const char *sumsAttr = "costate-sums";
constexpr const char *gathersAttr = "costate-gathers";
/// What kernels of one function differ in.
constexpr const char *placeName = "costate_device_tape_place";
constexpr const char *drainsName = "costate_device_tape_drains";
constexpr const char *sortName = "costate_device_sort_begin";
/// What the code of a library depends on.
constexpr const char *lanesName = "costate_device_lanes";
constexpr const char *hasWarpsName = "costate_device_has_warps";
constexpr const char *reconvergesName = "costate_device_reconverges";

struct DeviceFunction {
  Function *function;
  unsigned words;
};

Result<SmallVector<DeviceFunction>> deviceFunctions(Module &module,
                                                    const GpuForm &form) {
  SmallVector<DeviceFunction> found;
  for (Function &function : module) {
    if (!function.hasFnAttribute(deviceWordsAttr))
      continue;
    uint64_t words = function.getFnAttributeAsParsedInteger(deviceWordsAttr);
    if (words > form.largestWords)
      return Failure{ErrorCode::Internal,
                     "`" + function.getName().str() + "` takes " +
                         std::to_string(words) + " words; " + form.gpus +
                         " take " + std::to_string(form.largestWords) +
                         " at most"};
    found.push_back({&function, static_cast<unsigned>(words)});
  }
  return found;
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
  GlobalVariable *memory = module.getGlobalVariable(blockMemoryName);
  if (!memory) {
    auto *type = ArrayType::get(Type::getInt8Ty(module.getContext()), 0);
    memory = new GlobalVariable(
        module, type, false, GlobalValue::ExternalLinkage, nullptr,
        blockMemoryName, nullptr, GlobalValue::NotThreadLocal, sharedSpace);
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
      function.hasFnAttribute(deviceSharedAttr))
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

/// Blocks of a multiprocessor that a kernel shall leave room for.
constexpr unsigned blocksOfSweep = 3, blocksOfDrain = 1, blocksOfSort = 4,
                   blocksOfGather = 4;

unsigned blocksOf(TapePlace place) {
  return place == TapeInDrain   ? blocksOfDrain
         : place == TapeForSort ? blocksOfSort
                                : blocksOfSweep;
}

void addKernel(Module &module, const DeviceFunction &device,
               const std::string &name, unsigned least = blocksOfSweep) {
  Function *kernel = declareKernel(module, device, name);
  if (device.function->hasFnAttribute(deviceTilesAttr))
    limitBlocks(*kernel, TAPE_BLOCK_THREADS, least);
  if (device.function->hasFnAttribute(sumsAttr))
    limitBlocks(*kernel, sumBlockThreads, 1);
  if (device.function->hasFnAttribute(gathersAttr))
    limitBlocks(*kernel, TAPE_BLOCK_THREADS, blocksOfGather);
  if (device.function->hasFnAttribute(deviceBlockDimAttr))
    limitBlocks(
        *kernel,
        static_cast<unsigned>(
            device.function->getFnAttributeAsParsedInteger(deviceBlockDimAttr)),
        1);
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

void answer(Function &body, StringRef name, uint64_t value) {
  for (CallInst *call : callsOf(body, name)) {
    call->replaceAllUsesWith(ConstantInt::get(call->getType(), value));
    call->eraseFromParent();
  }
}

/// A twin of a function that runs in tiles.
void addTwin(Module &module, const DeviceFunction &device, const char *suffix,
             TapePlace place) {
  ValueToValueMapTy bodyMap, map;
  Function *body = bodyOf(*device.function);
  Function *twinBody = CloneFunction(body, bodyMap);
  map[body] = twinBody;
  Function *twin = CloneFunction(device.function, map);
  answer(*twinBody, placeName, place);
  answer(*twinBody, drainsName, place == TapeInDrain);
  addKernel(module, {twin, device.words},
            device.function->getName().str() + suffix, blocksOf(place));
}

/// With tapes in shared memory; with code for what fits nowhere else; what only
/// sorts; and, the function itself, with none of these.
void addTwins(Module &module, const DeviceFunction &device,
              const GpuForm &form) {
  Function *body = bodyOf(*device.function);
  if (!body)
    return;
  addTwin(module, device, ".shared", TapeInShared);
  if (form.shape.knowsPlaces || !callsOf(*body, drainsName).empty())
    addTwin(module, device, ".drain", TapeInDrain);
  if (form.shape.hasWarps && !callsOf(*body, sortName).empty())
    addTwin(module, device, ".sort", TapeForSort);
  answer(*body, placeName, form.shape.knowsPlaces ? TapeOnHeap : TapeAnywhere);
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

bool isNumber(const Type *type) {
  return type->isIntegerTy() || type->isFloatingPointTy();
}

/// What it takes and returns are numbers.
bool isScalar(const Function &function) {
  return isNumber(function.getReturnType()) &&
         all_of(function.args(), [](const Argument &argument) {
           return isNumber(argument.getType());
         });
}

void inlineAllButScalar(Module &module) {
  for (Function &function : module) {
    bool isKernel = function.hasExternalLinkage();
    if (function.isDeclaration() || isKernel || isScalar(function))
      continue;
    function.removeFnAttr(Attribute::NoInline);
    function.removeFnAttr(Attribute::OptimizeNone);
    function.addFnAttr(Attribute::AlwaysInline);
  }
}

using Calls = SmallVector<CallInst *>;

/// Calls that end a thread, by what they call.
MapVector<Function *, Calls> endsOf(Function &function) {
  MapVector<Function *, Calls> ends;
  for (BasicBlock &block : function)
    if (isa<UnreachableInst>(block.getTerminator()))
      if (auto *call =
              dyn_cast_or_null<CallInst>(block.getTerminator()->getPrevNode());
          call && call->getCalledFunction() && call->doesNotReturn())
        ends[call->getCalledFunction()].push_back(call);
  return ends;
}

/// One of several calls, in a block of its own.
void merge(ArrayRef<CallInst *> calls) {
  CallInst *first = calls.front();
  auto *end = BasicBlock::Create(first->getContext(), "", first->getFunction());
  IRBuilder<> builder(end);
  SmallVector<Value *> arguments;
  for (const Use &argument : first->args()) {
    PHINode *phi = builder.CreatePHI(argument->getType(), calls.size());
    for (CallInst *call : calls)
      phi->addIncoming(call->getArgOperand(argument.getOperandNo()),
                       call->getParent());
    arguments.push_back(phi);
  }
  CallInst *all = builder.CreateCall(first->getCalledFunction(), arguments);
  all->setAttributes(first->getAttributes());
  all->setCallingConv(first->getCallingConv());
  builder.CreateUnreachable();
  for (CallInst *call : calls) {
    BasicBlock *block = call->getParent();
    block->getTerminator()->eraseFromParent();
    call->eraseFromParent();
    BranchInst::Create(end, block);
  }
}

/// Each check that fails reports it, and what reports is inlined.
void mergeEnds(Module &module) {
  for (Function &function : module)
    for (auto &[called, calls] : endsOf(function))
      if (calls.size() > 1)
        merge(calls);
}

constexpr const char *fmaNames[] = {"costate_device_fma_f32",
                                    "costate_device_fma_f64"};

/// So that the library brings it.
void declareFma(Module &module, bool isDouble) {
  LLVMContext &context = module.getContext();
  Type *type =
      isDouble ? Type::getDoubleTy(context) : Type::getFloatTy(context);
  module.getOrInsertFunction(fmaNames[isDouble], type, type, type, type);
}

void replaceFma(Module &module, bool isDouble) {
  Function *ours = module.getFunction(fmaNames[isDouble]);
  for (Function &function : module) {
    if (function.getIntrinsicID() != Intrinsic::fma ||
        function.getReturnType() != ours->getReturnType())
      continue;
    function.replaceAllUsesWith(ours);
  }
}

constexpr const char *quotientNames[] = {"costate_device_div_u64",
                                         "costate_device_div_i64"};

void declareQuotients(Module &module) {
  Type *type = Type::getInt64Ty(module.getContext());
  for (const char *name : quotientNames)
    module.getOrInsertFunction(name, type, type, type);
}

bool isSigned(const BinaryOperator &op) {
  return op.getOpcode() == Instruction::SDiv ||
         op.getOpcode() == Instruction::SRem;
}

bool isRest(const BinaryOperator &op) {
  return op.getOpcode() == Instruction::URem ||
         op.getOpcode() == Instruction::SRem;
}

bool isDivision(const BinaryOperator &op) {
  switch (op.getOpcode()) {
  case Instruction::SDiv:
  case Instruction::SRem:
  case Instruction::UDiv:
  case Instruction::URem:
    return op.getType()->isIntegerTy(64);
  default:
    return false;
  }
}

/// Towards zero.
Value *shifted(IRBuilder<> &builder, Value *x, unsigned log, bool isSigned) {
  if (log == 0)
    return x;
  if (!isSigned)
    return builder.CreateLShr(x, log);
  Value *sign = builder.CreateAShr(x, 63);
  Value *rest = builder.CreateLShr(sign, 64 - log);
  return builder.CreateAShr(builder.CreateAdd(x, rest), log);
}

void replaceDivision(BinaryOperator &op) {
  IRBuilder<> builder(&op);
  Value *x = op.getOperand(0), *y = op.getOperand(1);
  auto *divisor = dyn_cast<ConstantInt>(y);
  bool isPower = divisor && divisor->getValue().isPowerOf2() &&
                 !(isSigned(op) && divisor->isNegative());
  Value *result =
      isPower
          ? shifted(builder, x, divisor->getValue().logBase2(), isSigned(op))
          : builder.CreateCall(
                op.getModule()->getFunction(quotientNames[isSigned(op)]),
                {x, y});
  if (isRest(op))
    result = builder.CreateSub(x, builder.CreateMul(result, y));
  op.replaceAllUsesWith(result);
  op.eraseFromParent();
}

void replaceDivisions(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction :
         make_early_inc_range(instructions(function)))
      if (auto *op = dyn_cast<BinaryOperator>(&instruction);
          op && isDivision(*op))
        replaceDivision(*op);
}

bool calls(const Loop &loop) {
  return any_of(loop.blocks(), [](const BasicBlock *block) {
    return any_of(*block, [](const Instruction &instruction) {
      return isa<CallInst>(instruction) && !isa<IntrinsicInst>(instruction);
    });
  });
}

/// Unrolling such loops would multiply what is called.
struct KeepLoopsThatCall : PassInfoMixin<KeepLoopsThatCall> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    for (Loop *loop :
         analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
      if (calls(*loop))
        loop->setLoopAlreadyUnrolled();
    return PreservedAnalyses::all();
  }
};

/// Small loops of few iterations are unrolled here by a small factor, and not
/// again by the assembler of the GPU: what stands around the iterations would
/// take longer.
struct UnrollShortLoopsOnce : PassInfoMixin<UnrollShortLoopsOnce> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    for (Loop *loop :
         analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
      if (isSmall(*loop) && hasFewIterations(*loop, evolution))
        addStringMetadataToLoop(loop, "llvm.loop.unroll.count", factor);
    return PreservedAnalyses::all();
  }

private:
  /// LLVM may unroll loops of fewer iterations fully, larger ones by less.
  static constexpr unsigned least = 9, most = 16, factor = 4, largest = 16;

  static bool isSmall(const Loop &loop) {
    return loop.getNumBlocks() == 1 && !calls(loop) &&
           loop.getHeader()->sizeWithoutDebug() <= largest;
  }

  static bool hasFewIterations(Loop &loop, ScalarEvolution &evolution) {
    unsigned iterations = evolution.getSmallConstantMaxTripCount(&loop);
    return least <= iterations && iterations <= most &&
           evolution.getSmallConstantTripCount(&loop) == 0 &&
           !getBooleanLoopAttribute(&loop, "llvm.loop.unroll.disable");
  }
};

void optimise(Module &module, TargetMachine &machine, const GpuForm &form) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  auto passes = [&](PassBuilder &builder) {
    // Loops of few iterations are unrolled before: their arrays become values.
    builder.registerVectorizerStartEPCallback(
        [&](FunctionPassManager &passes, OptimizationLevel) {
          if (form.callsScalarOnly)
            passes.addPass(KeepLoopsThatCall());
          if (form.unrollsAgain)
            passes.addPass(UnrollShortLoopsOnce());
        });
    return builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2);
  };
  conversion::runPasses(module, machine, passes, tuning);
}

} // namespace

unsigned mostWords(const Module &module) {
  uint64_t most = 0;
  for (const Function &function : module)
    if (function.hasFnAttribute(deviceWordsAttr))
      most = std::max(most,
                      function.getFnAttributeAsParsedInteger(deviceWordsAttr));
  return most;
}

Result<> makeKernels(Module &module, TargetMachine &machine,
                     const GpuForm &form) {
  Result<SmallVector<DeviceFunction>> functions = deviceFunctions(module, form);
  if (!functions)
    return functions.error();
  retarget(module, machine);
  internalise(module);
  for (const DeviceFunction &function : *functions)
    if (function.function->hasFnAttribute(deviceTilesAttr))
      addTwins(module, function, form);
  for (const DeviceFunction &function : *functions)
    addKernel(module, function, function.function->getName().str());
#ifdef COSTATE_ASSERTIONS
  if (verifyModule(module, &errs()))
    return Failure{ErrorCode::Internal, "the code for the GPU is malformed"};
#endif
  bool fuses[] = {form.fusesFloats, form.fusesDoubles};
  for (bool isDouble : {false, true})
    if (!fuses[isDouble])
      declareFma(module, isDouble);
  if (!form.dividesLongs)
    declareQuotients(module);
  if (Result<> linked = linkLibrary(module, form.library); !linked)
    return linked.error();
  for (bool isDouble : {false, true})
    if (!fuses[isDouble])
      replaceFma(module, isDouble);
  if (!form.dividesLongs)
    replaceDivisions(module);
  if (form.callsScalarOnly) {
    mergeEnds(module);
    inlineAllButScalar(module);
  }
  for (Function &function : module) {
    answer(function, lanesName, form.shape.lanes);
    answer(function, hasWarpsName, form.shape.hasWarps);
    answer(function, reconvergesName, form.reconverges);
  }
  narrowScopes(module);
  optimise(module, machine, form);
  return {};
}

} // namespace costate::compiler
