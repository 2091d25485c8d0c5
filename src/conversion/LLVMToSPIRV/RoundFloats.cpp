#include "base/VulkanChip.h"
#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace costate::conversion {
namespace {

bool isRoot(const Instruction &instruction) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  return call && call->getIntrinsicID() == Intrinsic::sqrt;
}

bool isInexact(const Instruction &instruction, const VulkanFeatures &features) {
  if (!instruction.getType()->isFloatTy())
    return false;
  if (auto *number = dyn_cast<FPMathOperator>(&instruction);
      number && number->hasApproxFunc())
    return false;
  if (instruction.getOpcode() == Instruction::FDiv)
    return !features.div32;
  return isRoot(instruction) && !features.sqrt32;
}

/// A quotient or a root that is rounded correctly, of operations of a device
/// that are nearly so: within three units in the last place.
class Rounding {
public:
  Rounding(Instruction &instruction)
      : instruction(instruction), b(&instruction), x(instruction.getOperand(0)),
        y(instruction.getOperand(isRoot(instruction) ? 0 : 1)) {}

  /// Of doubles. The second rounding changes nothing, as they have more than
  /// twice the bits.
  Value *inDoubles() {
    Value *wide = b.CreateFPExt(x, b.getDoubleTy());
    Value *result = isRoot(instruction)
                        ? b.CreateUnaryIntrinsic(Intrinsic::sqrt, wide)
                        : b.CreateFDiv(wide, b.CreateFPExt(y, b.getDoubleTy()));
    return b.CreateFPTrunc(result, b.getFloatTy());
  }

  /// Of floats where nothing on the way can be too large or too small, else of
  /// doubles.
  Value *inFloats() {
    Instruction *then = nullptr, *otherwise = nullptr;
    SplitBlockAndInsertIfThenElse(isRoot(instruction) ? isMiddling(x, false)
                                                      : areMiddling(),
                                  &instruction, &then, &otherwise);
    b.SetInsertPoint(then);
    Value *fast = isRoot(instruction) ? root() : quotient();
    b.SetInsertPoint(otherwise);
    Value *slow = inDoubles();
    b.SetInsertPoint(&instruction);
    PHINode *result = b.CreatePHI(b.getFloatTy(), 2);
    result->addIncoming(fast, then->getParent());
    result->addIncoming(slow, otherwise->getParent());
    return result;
  }

private:
  Value *bits(Value *value) { return b.CreateBitCast(value, b.getInt32Ty()); }
  Value *one() { return ConstantFP::get(b.getFloatTy(), 1); }
  Value *fma(Value *p, Value *q, Value *r) {
    return b.CreateIntrinsic(Intrinsic::fma, b.getFloatTy(), {p, q, r});
  }
  /// p - q * r
  Value *rest(Value *p, Value *q, Value *r) {
    return fma(b.CreateFNeg(q), r, p);
  }
  Value *reciprocal(Value *value) {
    return b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_div_full,
                             {one(), value});
  }

  /// From 2^-61 to 2^62: products and remainders are normal.
  Value *isMiddling(Value *value, bool ofEitherSign) {
    Value *exponent = b.CreateLShr(bits(value), 23);
    if (ofEitherSign)
      exponent = b.CreateAnd(exponent, 0xff);
    return b.CreateICmpULT(b.CreateSub(exponent, b.getInt32(66)),
                           b.getInt32(124));
  }
  Value *isZero(Value *value) {
    return b.CreateICmpEQ(b.CreateShl(bits(value), 1), b.getInt32(0));
  }
  /// Of 1 / (2 - 2^-23) Newton's iteration finds a neighbour.
  Value *hasReciprocal(Value *value) {
    Value *mantissa = b.getInt32(0x7fffff);
    return b.CreateICmpNE(b.CreateAnd(bits(value), mantissa), mantissa);
  }
  Value *areMiddling() {
    Value *xs = b.CreateOr(isMiddling(x, true), isZero(x));
    return b.CreateAnd(xs, b.CreateAnd(isMiddling(y, true), hasReciprocal(y)));
  }

  /// P. Markstein, Computation of elementary functions on the IBM RISC
  /// System/6000 processor, IBM Journal of Research and Development 34, 1990.
  Value *quotient() {
    Value *inverse = reciprocal(y);
    for (int k = 0; k < 2; ++k)
      inverse = fma(rest(one(), y, inverse), inverse, inverse);
    Value *first = b.CreateFMul(x, inverse), *result = first;
    for (int k = 0; k < 2; ++k)
      result = fma(rest(x, y, result), inverse, result);
    return b.CreateSelect(isZero(x), first, result); // with its sign
  }

  /// Of three neighbours, the one whose products with both others enclose the
  /// number (B. Tuckerman's test).
  Value *root() {
    Value *near =
        b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_sqrt_rn_f, {x});
    Value *half =
        b.CreateFMul(reciprocal(near), ConstantFP::get(b.getFloatTy(), 0.5));
    near = fma(rest(x, near, near), half, near);
    auto beside = [&](int step) {
      Value *next = b.CreateAdd(bits(near), b.getInt32(unsigned(step)));
      return b.CreateBitCast(next, b.getFloatTy());
    };
    Value *below = beside(-1), *above = beside(1);
    Value *zero = ConstantFP::get(b.getFloatTy(), 0);
    Value *isLarge = b.CreateFCmpOLE(rest(x, near, below), zero);
    Value *isSmall = b.CreateFCmpOGT(rest(x, near, above), zero);
    return b.CreateSelect(isLarge, below, b.CreateSelect(isSmall, above, near));
  }

  Instruction &instruction;
  IRBuilder<> b;
  Value *x, *y;
};

} // namespace

void roundFloats(Function &function, const VulkanFeatures &features) {
  SmallVector<Instruction *> inexact;
  for (Instruction &instruction : instructions(function))
    if (features.f64 && isInexact(instruction, features))
      inexact.push_back(&instruction);
  for (Instruction *instruction : inexact) {
    Rounding rounding(*instruction);
    instruction->replaceAllUsesWith(features.fma32 ? rounding.inFloats()
                                                   : rounding.inDoubles());
    instruction->eraseFromParent();
  }
}

} // namespace costate::conversion
