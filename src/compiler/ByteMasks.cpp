#include "compiler/ByteMasks.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace costate::compiler {

static constexpr unsigned few = 8, many = 16;

static bool isOfEightBytes(const IntrinsicInst &access) {
  const Type *type;
  if (access.getIntrinsicID() == Intrinsic::masked_load)
    type = access.getType();
  else if (access.getIntrinsicID() == Intrinsic::masked_store)
    type = access.getArgOperand(0)->getType();
  else
    return false;
  return type->getScalarType()->isIntegerTy(8) &&
         cast<FixedVectorType>(type)->getNumElements() == few;
}

/// LLVM knows nothing of what it does not see: otherwise this would be KMOVB.
static Value *wideMask(IRBuilder<> &b, Value *mask) {
  Type *bits = b.getInt32Ty();
  Value *number = b.CreateZExt(b.CreateBitCast(mask, b.getInt8Ty()), bits);
  auto *same = InlineAsm::get(FunctionType::get(bits, bits, false), "", "=r,0",
                              /*hasSideEffects=*/false);
  number = b.CreateTrunc(b.CreateCall(same, number), b.getInt16Ty());
  return b.CreateBitCast(number, FixedVectorType::get(b.getInt1Ty(), many));
}

static Value *resized(IRBuilder<> &b, Value *bytes, unsigned size) {
  SmallVector<int> lanes;
  for (int lane = 0; lane < int(size); ++lane)
    lanes.push_back(lane < int(few) ? lane : PoisonMaskElem);
  return b.CreateShuffleVector(bytes, lanes);
}

static Value *widened(IRBuilder<> &b, IntrinsicInst &access) {
  const bool isLoad = access.getIntrinsicID() == Intrinsic::masked_load;
  const unsigned pointer = isLoad ? 0 : 1, mask = pointer + 1;
  Value *place = access.getArgOperand(pointer);
  Align alignment = access.getParamAlign(pointer).valueOrOne();
  Value *wide = wideMask(b, access.getArgOperand(mask));
  if (!isLoad)
    return b.CreateMaskedStore(resized(b, access.getArgOperand(0), many), place,
                               alignment, wide);
  auto *bytes = FixedVectorType::get(b.getInt8Ty(), many);
  Value *others = resized(b, access.getArgOperand(2), many);
  return resized(b, b.CreateMaskedLoad(bytes, place, alignment, wide, others),
                 few);
}

void widenByteMasks(Function &function) {
  for (Instruction &one : make_early_inc_range(instructions(function)))
    if (auto *access = dyn_cast<IntrinsicInst>(&one);
        access && isOfEightBytes(*access)) {
      IRBuilder<> b(access);
      Value *same = widened(b, *access);
      if (!access->getType()->isVoidTy())
        access->replaceAllUsesWith(same);
      access->eraseFromParent();
    }
}

} // namespace costate::compiler
