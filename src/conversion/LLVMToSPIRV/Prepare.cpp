#include "conversion/LLVMToSPIRV/Prepare.h"

#include "base/VulkanChip.h"
#include "conversion/KernelForm.h"
#include "conversion/LLVMPasses.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LowerMemIntrinsics.h"

using namespace llvm;

namespace costate::conversion {
namespace {

constexpr unsigned globalSpace = 1, sharedSpace = 3;

void expandCopies(Function &function, const TargetTransformInfo &costs) {
  SmallVector<MemIntrinsic *> copies;
  for (Instruction &instruction : instructions(function))
    if (auto *copy = dyn_cast<MemIntrinsic>(&instruction))
      copies.push_back(copy);
  for (MemIntrinsic *copy : copies) {
    if (auto *set = dyn_cast<MemSetInst>(copy))
      expandMemSetAsLoop(set);
    else if (auto *from = dyn_cast<MemCpyInst>(copy))
      expandMemCpyAsLoop(from, costs);
    else
      expandMemMoveAsLoop(cast<MemMoveInst>(copy), costs);
    copy->eraseFromParent();
  }
}

/// Pointers that may point into shared memory or elsewhere.
SmallPtrSet<Value *, 16> mixedPointers(Function &function) {
  SmallPtrSet<Value *, 16> mixed;
  SmallVector<Value *> work;
  for (Instruction &instruction : instructions(function))
    if (auto *cast = dyn_cast<AddrSpaceCastInst>(&instruction))
      if (cast->getSrcAddressSpace() == sharedSpace)
        work.push_back(cast);
  while (!work.empty()) {
    Value *pointer = work.pop_back_val();
    if (!mixed.insert(pointer).second)
      continue;
    for (User *user : pointer->users())
      if (isa<GetElementPtrInst, PHINode, SelectInst, FreezeInst>(user) &&
          user->getType()->isPointerTy())
        work.push_back(user);
  }
  return mixed;
}

/// `access`, of `pointer`, in either of two ways.
void split(Instruction &access, unsigned operand) {
  Value *pointer = access.getOperand(operand);
  IRBuilder<> builder(&access);
  Value *isShared =
      builder.CreateIntrinsic(Intrinsic::nvvm_isspacep_shared, {pointer});
  Instruction *then = nullptr, *otherwise = nullptr;
  SplitBlockAndInsertIfThenElse(isShared, &access, &then, &otherwise);
  auto copyTo = [&](Instruction *place, unsigned space) {
    IRBuilder<> at(place);
    Instruction *copy = access.clone();
    copy->setOperand(
        operand, at.CreateAddrSpaceCast(
                     pointer, PointerType::get(access.getContext(), space)));
    at.Insert(copy);
    return copy;
  };
  Instruction *inShared = copyTo(then, sharedSpace);
  Instruction *inGlobal = copyTo(otherwise, globalSpace);
  if (!access.getType()->isVoidTy()) {
    IRBuilder<> at(&access);
    PHINode *result = at.CreatePHI(access.getType(), 2);
    result->addIncoming(inShared, inShared->getParent());
    result->addIncoming(inGlobal, inGlobal->getParent());
    access.replaceAllUsesWith(result);
  }
  access.eraseFromParent();
}

/// The operand that is the address; none for what accesses no memory.
std::optional<unsigned> addressOperand(const Instruction &instruction) {
  if (isa<LoadInst>(instruction))
    return LoadInst::getPointerOperandIndex();
  if (isa<StoreInst>(instruction))
    return StoreInst::getPointerOperandIndex();
  if (isa<AtomicRMWInst>(instruction))
    return AtomicRMWInst::getPointerOperandIndex();
  if (isa<AtomicCmpXchgInst>(instruction))
    return AtomicCmpXchgInst::getPointerOperandIndex();
  return std::nullopt;
}

void splitMixed(Function &function) {
  SmallPtrSet<Value *, 16> mixed = mixedPointers(function);
  if (mixed.empty())
    return;
  SmallVector<Instruction *> accesses;
  for (Instruction &instruction : instructions(function))
    if (auto operand = addressOperand(instruction))
      if (mixed.contains(instruction.getOperand(*operand)))
        accesses.push_back(&instruction);
  for (Instruction *access : accesses)
    split(*access, *addressOperand(*access));
}

/// SPIR-V has neither constants that are expressions of addresses nor uses for
/// those of pointers.
void expandConstants(Module &module) {
  SmallVector<Constant *> roots;
  for (GlobalVariable &global : module.globals())
    roots.push_back(&global);
  convertUsersOfConstantsToInstructions(roots);
}

/// The numbers that `constant` is made of.
void flatten(Constant *constant, SmallVectorImpl<Constant *> &numbers) {
  Type *type = constant->getType();
  if (!type->isAggregateType() && !type->isVectorTy()) {
    numbers.push_back(constant);
    return;
  }
  for (unsigned k = 0; Constant *part = constant->getAggregateElement(k); ++k)
    flatten(part, numbers);
}

/// Tables of vectors become tables of numbers.
void flattenTables(Module &module) {
  for (GlobalVariable &table : make_early_inc_range(module.globals())) {
    if (!table.isConstant() || !table.hasInitializer())
      continue;
    SmallVector<Constant *> numbers;
    flatten(table.getInitializer(), numbers);
    auto *type = ArrayType::get(numbers.front()->getType(), numbers.size());
    bool isFlat = table.getValueType() == type;
    bool isMixed = any_of(numbers, [&](Constant *number) {
      return number->getType() != numbers.front()->getType();
    });
    if (isFlat || isMixed)
      continue;
    auto *made = new GlobalVariable(
        module, type, true, table.getLinkage(),
        ConstantArray::get(type, numbers), table.getName() + ".flat", &table,
        GlobalValue::NotThreadLocal, table.getAddressSpace());
    table.replaceAllUsesWith(made);
    table.eraseFromParent();
  }
}

} // namespace

void prepareForSpirv(Module &module, TargetMachine &machine,
                     const VulkanFeatures &features) {
  auto run = [&](StringRef pipeline) {
    runPasses(module, machine, [&](PassBuilder &builder) {
      return parsePasses(builder, pipeline);
    });
  };
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    endThreadsByReturning(function);
    expandCopies(function, machine.getTargetTransformInfo(function));
    markPrivate(function);
  }
  flattenTables(module);
  expandConstants(module);
  run("function(infer-address-spaces,simplifycfg,sroa)");
  for (Function &function : module)
    splitMixed(function);
  expandAtomics(module, features);
  run("function(lower-switch,scalarizer<load-store>)");
  for (Function &function : module) {
    roundFloats(function, features);
    while (expandIntrinsics(function))
      ;
  }
  run("function(instsimplify,dce)");
  expandConstants(module);
}

} // namespace costate::conversion
