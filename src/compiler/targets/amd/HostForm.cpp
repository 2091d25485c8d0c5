#include "compiler/targets/amd/HostForm.h"

#include "base/AmdHost.h"
#include "compiler/BackEnd.h"
#include "compiler/GpuModule.h"
#include "compiler/Target.h"
#include "compiler/targets/amd/Link.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"

#include <numbers>

using namespace llvm;

namespace costate::compiler {
namespace {

constexpr const char *callsName = "costate_amd_calls";
/// Members of AmdHostCalls.
enum Call : unsigned { BlockThreads, BlockBarrier, Together };

/// Where an instruction stands among those of its function, and the iterations
/// of the loops around it, which are counted here.
class Paths {
public:
  explicit Paths(Function &function) : dominators(function), loops(dominators) {
    IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
    number = builder.getInt64Ty();
    for (Loop *loop : loops.getLoopsInPreorder()) {
      counts[loop] = builder.CreateAlloca(number);
      deepest = std::max(deepest, loop->getLoopDepth());
    }
    path = builder.CreateAlloca(ArrayType::get(number, 2 * deepest + 1));
    for (Loop *loop : loops.getLoopsInPreorder())
      count(*loop);
    order(function);
  }

  /// Writes it in front of `instruction`: its address and length.
  std::pair<Value *, Value *> write(IRBuilder<> &builder,
                                    const Instruction &instruction) {
    SmallVector<Value *> values;
    const Loop *loop = loops.getLoopFor(instruction.getParent());
    for (; loop; loop = loop->getParentLoop()) {
      values.push_back(builder.CreateLoad(number, counts[loop]));
      values.push_back(builder.getInt64(places[loop->getHeader()]));
    }
    std::reverse(values.begin(), values.end());
    uint64_t place = places[instruction.getParent()] + ++inBlock;
    values.push_back(builder.getInt64(place));
    for (auto [k, value] : enumerate(values))
      builder.CreateStore(value, builder.CreateConstGEP1_64(number, path, k));
    return {path, builder.getInt64(values.size())};
  }

private:
  static constexpr uint64_t blockStep = 1 << 20;

  void count(Loop &loop) {
    BasicBlock *header = loop.getHeader();
    IRBuilder<> builder(&*header->getFirstInsertionPt());
    Value *before = builder.CreateLoad(number, counts[&loop]);
    builder.CreateStore(builder.CreateAdd(before, builder.getInt64(1)),
                        counts[&loop]);
    for (BasicBlock *from : predecessors(header))
      if (!loop.contains(from)) {
        builder.SetInsertPoint(from->getTerminator());
        builder.CreateStore(builder.getInt64(0), counts[&loop]);
      }
  }

  /// Blocks of a loop come before those that follow it.
  void order(Function &function) {
    ReversePostOrderTraversal<Function *> all(&function);
    SmallVector<BasicBlock *> left(all.begin(), all.end());
    place(nullptr, left);
  }

  void place(const Loop *inside, ArrayRef<BasicBlock *> blocks) {
    SmallPtrSet<const Loop *, 8> done;
    for (BasicBlock *block : blocks) {
      const Loop *own = loops.getLoopFor(block);
      if (own == inside) {
        places[block] = next += blockStep;
        continue;
      }
      while (own->getParentLoop() != inside)
        own = own->getParentLoop();
      if (!done.insert(own).second)
        continue;
      SmallVector<BasicBlock *> within;
      for (BasicBlock *other : blocks)
        if (own->contains(other))
          within.push_back(other);
      place(own, within);
    }
  }

  DominatorTree dominators;
  LoopInfo loops;
  Type *number = nullptr;
  DenseMap<const Loop *, Value *> counts;
  DenseMap<const BasicBlock *, uint64_t> places;
  Value *path = nullptr;
  unsigned deepest = 0;
  uint64_t next = 0, inBlock = 0;
};

/// Replaces what a kernel does as one of many threads.
class Kernel {
public:
  explicit Kernel(Function &function) : function(function), paths(function) {
    IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
    Value *threads = call(builder, BlockThreads, builder.getInt64Ty(), {});
    Value *thread = function.getArg(1);
    Type *word = builder.getInt32Ty();
    inBlock = builder.CreateTrunc(builder.CreateURem(thread, threads), word);
    block = builder.CreateTrunc(builder.CreateUDiv(thread, threads), word);
    Value *blocks = builder.CreateTrunc(
        builder.CreateUDiv(function.getArg(2), threads), word);
    hidden = builder.CreateAlloca(ArrayType::get(word, 4));
    builder.CreateStore(blocks, hidden);
    builder.CreateStore(builder.CreateTrunc(threads, builder.getInt16Ty()),
                        builder.CreateConstGEP1_64(word, hidden, 3));
  }

  void replaceAll() {
    SmallVector<IntrinsicInst *> calls;
    for (Instruction &instruction : instructions(function)) {
      instruction.setMetadata(LLVMContext::MD_invariant_load, nullptr);
      if (auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction))
        calls.push_back(intrinsic);
    }
    for (IntrinsicInst *intrinsic : calls)
      replace(*intrinsic);
  }

private:
  static Value *call(IRBuilder<> &builder, Call which, Type *result,
                     ArrayRef<Value *> arguments) {
    Module &module = *builder.GetInsertBlock()->getModule();
    Type *pointer = builder.getPtrTy();
    Value *table =
        builder.CreateLoad(pointer, module.getGlobalVariable(callsName));
    Value *callee = builder.CreateLoad(
        pointer, builder.CreateConstGEP1_64(pointer, table, which));
    SmallVector<Type *> types;
    for (Value *argument : arguments)
      types.push_back(argument->getType());
    return builder.CreateCall(FunctionType::get(result, types, false), callee,
                              arguments);
  }

  Value *together(IRBuilder<> &b, const Instruction &at, LaneOp op,
                  Value *value, Value *from) {
    auto [path, length] = paths.write(b, at);
    return call(b, Together, b.getInt64Ty(),
                {b.getInt32(static_cast<uint32_t>(op)),
                 b.CreateZExt(value, b.getInt64Ty()), from, path, length});
  }

  Value *readLane(IRBuilder<> &b, const Instruction &at, Value *value,
                  Value *lane) {
    return b.CreateTrunc(together(b, at, LaneOp::Read, value, lane),
                         value->getType());
  }

  void replace(IntrinsicInst &at) {
    IRBuilder<> builder(&at);
    if (Value *made = make(builder, at)) {
      if (!at.getType()->isVoidTy())
        at.replaceAllUsesWith(made);
      at.eraseFromParent();
    }
  }

  /// Null: it stays.
  Value *make(IRBuilder<> &b, IntrinsicInst &at) {
    switch (at.getIntrinsicID()) {
    case Intrinsic::amdgcn_workitem_id_x:
      return inBlock;
    case Intrinsic::amdgcn_workgroup_id_x:
      return block;
    case Intrinsic::amdgcn_implicitarg_ptr:
      return b.CreateAddrSpaceCast(hidden, at.getType());
    case Intrinsic::amdgcn_s_barrier:
      return call(b, BlockBarrier, b.getVoidTy(), {});
    case Intrinsic::amdgcn_wave_barrier:
      return together(b, at, LaneOp::Meet, b.getInt64(0), b.getInt32(0));
    case Intrinsic::amdgcn_ballot:
      return b.CreateTrunc(
          together(b, at, LaneOp::Ballot, at.getArgOperand(0), b.getInt32(0)),
          at.getType());
    case Intrinsic::amdgcn_ds_bpermute:
      return readLane(b, at, at.getArgOperand(1),
                      b.CreateLShr(at.getArgOperand(0), 2));
    case Intrinsic::amdgcn_readlane:
      return readLane(b, at, at.getArgOperand(0), at.getArgOperand(1));
    default:
      return number(b, at);
    }
  }

  static Value *number(IRBuilder<> &b, IntrinsicInst &at) {
    auto ofCircle = [&](Intrinsic::ID id) {
      Value *radians =
          b.CreateFMul(at.getArgOperand(0),
                       ConstantFP::get(at.getType(), 2 * std::numbers::pi));
      return b.CreateUnaryIntrinsic(id, radians);
    };
    Value *one = at.getType()->isFloatingPointTy()
                     ? ConstantFP::get(at.getType(), 1)
                     : nullptr;
    switch (at.getIntrinsicID()) {
    case Intrinsic::amdgcn_sin:
      return ofCircle(Intrinsic::sin);
    case Intrinsic::amdgcn_cos:
      return ofCircle(Intrinsic::cos);
    case Intrinsic::amdgcn_exp2:
      return b.CreateUnaryIntrinsic(Intrinsic::exp2, at.getArgOperand(0));
    case Intrinsic::amdgcn_log:
      return b.CreateUnaryIntrinsic(Intrinsic::log2, at.getArgOperand(0));
    case Intrinsic::amdgcn_rsq:
      return b.CreateFDiv(
          one, b.CreateUnaryIntrinsic(Intrinsic::sqrt, at.getArgOperand(0)));
    case Intrinsic::amdgcn_fract:
      return b.CreateFSub(
          at.getArgOperand(0),
          b.CreateUnaryIntrinsic(Intrinsic::floor, at.getArgOperand(0)));
    default:
      return nullptr;
    }
  }

  Function &function;
  Paths paths;
  Value *inBlock = nullptr, *block = nullptr, *hidden = nullptr;
};

void useHostStack(Function &function) {
  SmallVector<AllocaInst *> all;
  for (Instruction &instruction : instructions(function))
    if (auto *memory = dyn_cast<AllocaInst>(&instruction);
        memory && memory->getAddressSpace() != 0)
      all.push_back(memory);
  for (AllocaInst *memory : all) {
    IRBuilder<> builder(memory);
    auto *own = builder.CreateAlloca(memory->getAllocatedType(), 0u,
                                     memory->getArraySize());
    own->setAlignment(memory->getAlign());
    memory->replaceAllUsesWith(
        builder.CreateAddrSpaceCast(own, memory->getType()));
    memory->eraseFromParent();
  }
}

/// With the signature of simt::DeviceEntry.
Function *asEntry(Function &kernel) {
  LLVMContext &context = kernel.getContext();
  Type *pointer = PointerType::getUnqual(context);
  Type *number = Type::getInt64Ty(context);
  auto *type = FunctionType::get(Type::getVoidTy(context),
                                 {pointer, number, number, pointer}, false);
  Function *entry = Function::Create(type, GlobalValue::ExternalLinkage, "",
                                     kernel.getParent());
  entry->takeName(&kernel);
  entry->splice(entry->begin(), &kernel);
  IRBuilder<> builder(&*entry->getEntryBlock().getFirstInsertionPt());
  kernel.getArg(0)->replaceAllUsesWith(builder.CreateAddrSpaceCast(
      entry->getArg(0), kernel.getArg(0)->getType()));
  kernel.eraseFromParent();
  return entry;
}

/// The memory of a block is that of the thread of the host which runs it; what
/// a launch adds is an argument.
void placeBlockMemory(Module &module) {
  SmallVector<Constant *> shared;
  for (GlobalVariable &global : module.globals())
    if (global.getAddressSpace() == sharedSpace)
      shared.push_back(&global);
  convertUsersOfConstantsToInstructions(shared);
  for (Constant *constant : shared) {
    auto *global = cast<GlobalVariable>(constant);
    Constant *own = nullptr;
    if (global->hasInitializer())
      own = new GlobalVariable(
          module, global->getValueType(), false, GlobalValue::InternalLinkage,
          Constant::getNullValue(global->getValueType()), "", nullptr,
          GlobalValue::GeneralDynamicTLSModel);
    for (Use &use : make_early_inc_range(global->uses())) {
      auto *user = cast<Instruction>(use.getUser());
      auto *phi = dyn_cast<PHINode>(user);
      IRBuilder<> builder(phi ? phi->getIncomingBlock(use)->getTerminator()
                              : user);
      Value *place = user->getFunction()->getArg(3);
      if (own)
        place = builder.CreateThreadLocalAddress(own);
      use.set(builder.CreateAddrSpaceCast(place, global->getType()));
    }
    global->eraseFromParent();
  }
}

std::unique_ptr<TargetMachine> hostMachine() {
  TargetMachinePointer known = borrowTargetMachine();
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(known->getTarget().createTargetMachine(
      known->getTargetTriple(), host().cpu, host().features, options,
      Reloc::PIC_, std::nullopt, CodeGenOptLevel::Less));
}

Result<> checkReplaced(const Module &module) {
  for (const Function &function : module)
    if (function.isTargetIntrinsic() && !function.use_empty())
      return Failure{ErrorCode::Internal, "the host has nothing for `" +
                                              function.getName().str() + "`"};
  return {};
}

} // namespace

Result<std::string> emitForHost(Module &module) {
  std::unique_ptr<TargetMachine> machine = hostMachine();
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  auto *pointer = PointerType::getUnqual(module.getContext());
  new GlobalVariable(module, pointer, false, GlobalValue::ExternalLinkage,
                     ConstantPointerNull::get(pointer), callsName);
  SmallVector<Function *> kernels;
  for (Function &function : module) {
    if (!function.isDeclaration())
      useHostStack(function);
    if (function.getCallingConv() == CallingConv::AMDGPU_KERNEL)
      kernels.push_back(&function);
  }
  for (Function *&kernel : kernels)
    kernel = asEntry(*kernel);
  placeBlockMemory(module);
  for (Function *kernel : kernels)
    Kernel(*kernel).replaceAll();
  if (Result<> has = checkReplaced(module); !has)
    return has.error();
  BackEndErrors errors(module.getContext());
  Result<std::string> object =
      runBackEnd(module, *machine, CodeGenFileType::ObjectFile);
  if (Result<> made = errors.check("the host as an AMD GPU"); !made)
    return made.error();
  return object ? linkForHost(*object) : object;
}

} // namespace costate::compiler
