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
  if (!instruction.getType()->isFloatTy() || !(features.fma32 || features.f64))
    return false;
  if (auto *number = dyn_cast<FPMathOperator>(&instruction);
      number && number->hasApproxFunc())
    return false;
  if (instruction.getOpcode() == Instruction::FDiv)
    return !features.div32;
  return isRoot(instruction) && !features.sqrt32;
}

/// A quotient or a root that is rounded correctly, of operations of a device
/// that are nearly so: within six units in the last place, as Vulkan allows.
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

  /// Of floats, which round quotients twice that are denormals.
  Value *inFloats() { return isRoot(instruction) ? root() : quotient(); }

  /// Of floats, denormals, and what may have been rounded from one, of doubles.
  Value *inBoth() {
    Value *plain = inFloats();
    if (isRoot(instruction))
      return plain;
    Value *isDenormal =
        b.CreateAnd(b.CreateFCmpOLE(size(plain), number(0x1p-126)),
                    b.CreateFCmpONE(x, number(0)));
    BasicBlock *before = instruction.getParent();
    Instruction *then =
        SplitBlockAndInsertIfThen(isDenormal, &instruction, false);
    b.SetInsertPoint(then);
    Value *exact = inDoubles();
    b.SetInsertPoint(&instruction);
    PHINode *result = b.CreatePHI(b.getFloatTy(), 2);
    result->addIncoming(plain, before);
    result->addIncoming(exact, then->getParent());
    return result;
  }

private:
  Value *bits(Value *value) { return b.CreateBitCast(value, b.getInt32Ty()); }
  Value *floatOf(Value *bits) { return b.CreateBitCast(bits, b.getFloatTy()); }
  Value *number(double value) { return ConstantFP::get(b.getFloatTy(), value); }
  Value *size(Value *value) {
    return b.CreateUnaryIntrinsic(Intrinsic::fabs, value);
  }
  Value *fma(Value *p, Value *q, Value *r) {
    return b.CreateIntrinsic(Intrinsic::fma, b.getFloatTy(), {p, q, r});
  }
  /// p - q * r
  Value *rest(Value *p, Value *q, Value *r) {
    return fma(b.CreateFNeg(q), r, p);
  }
  Value *reciprocal(Value *value) {
    if (auto *known = dyn_cast<ConstantFP>(value))
      return number(1 / known->getValueAPF().convertToDouble());
    return b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_div_full,
                             {number(1), value});
  }

  /// Zeros, infinities and what is no number are right at first, with their
  /// signs, and 0 or no number in the end.
  Value *unlessSpecial(Value *first, Value *result) {
    return b.CreateSelect(b.CreateFCmpOGT(size(result), number(0)), result,
                          first);
  }

  /// 2^k of a float from 2^k to 2^(k + 4), as its bits: 0 below 2^-123, 2^125
  /// of infinities.
  Value *power(Value *value) {
    return b.CreateAnd(bits(value), b.getInt32(0x7e000000));
  }
  /// Of 1 / (2 - 2^-23) Newton's iteration may stay at the neighbour below.
  Value *mended(Value *inverse, Value *of) {
    Value *ones = b.getInt32(0x7fffff);
    Value *isHard = b.CreateICmpEQ(b.CreateAnd(bits(of), ones), ones);
    Value *known = floatOf(b.CreateSub(b.getInt32(0x7f000000), bits(of)));
    return b.CreateSelect(isHard, known, inverse);
  }

  /// P. Markstein, Computation of elementary functions on the IBM RISC
  /// System/6000 processor, IBM Journal of Research and Development 34, 1990.
  /// The divisor is made one from 1 to 16, the exponent of the quotient half of
  /// what it is: nothing on the way is too large or too small, unless the
  /// quotient is.
  Value *quotient() {
    Value *ofX = power(x), *ofY = power(y), *one = b.getInt32(0x3f800000);
    Value *half = b.CreateAShr(b.CreateSub(ofX, ofY), 1);
    Value *down = floatOf(b.CreateSub(one, half)),
          *up = floatOf(b.CreateAdd(one, half)),
          *scale = floatOf(b.CreateSub(b.getInt32(0x7f000000), ofY));
    Value *n = b.CreateFMul(b.CreateFMul(x, down), scale),
          *d = b.CreateFMul(y, scale);
    Value *inverse = reciprocal(d), *first = b.CreateFMul(n, inverse);
    for (int k = 0; k < 2; ++k)
      inverse = fma(rest(number(1), d, inverse), inverse, inverse);
    inverse = mended(inverse, d);
    Value *result = b.CreateFMul(n, inverse);
    for (int k = 0; k < 2; ++k)
      result = fma(rest(n, d, result), inverse, result);
    return b.CreateFMul(unlessSpecial(first, result), up);
  }

  /// Of three neighbours, the one whose products with both others enclose the
  /// number (B. Tuckerman's test).
  Value *root() {
    Value *isSmall = b.CreateFCmpOLT(x, number(0x1p-61));
    Value *of = b.CreateSelect(isSmall, b.CreateFMul(x, number(0x1p64)), x);
    Value *first =
        b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_sqrt_rn_f, {of});
    Value *half = b.CreateFMul(reciprocal(first), number(0.5));
    Value *near = fma(rest(of, first, first), half, first);
    auto beside = [&](int step) {
      return floatOf(b.CreateAdd(bits(near), b.getInt32(unsigned(step))));
    };
    Value *below = beside(-1), *above = beside(1);
    Value *isBelow = b.CreateFCmpOLE(rest(of, near, below), number(0)),
          *isAbove = b.CreateFCmpOGT(rest(of, near, above), number(0));
    Value *result =
        b.CreateSelect(isBelow, below, b.CreateSelect(isAbove, above, near));
    result = unlessSpecial(first, result);
    return b.CreateSelect(isSmall, b.CreateFMul(result, number(0x1p-32)),
                          result);
  }

  Instruction &instruction;
  IRBuilder<> b;
  Value *x, *y;
};

} // namespace

void roundFloats(Function &function, const VulkanFeatures &features) {
  SmallVector<Instruction *> inexact;
  for (Instruction &instruction : instructions(function))
    if (isInexact(instruction, features))
      inexact.push_back(&instruction);
  for (Instruction *instruction : inexact) {
    Rounding rounding(*instruction);
    instruction->replaceAllUsesWith(!features.fma32 ? rounding.inDoubles()
                                    : features.denorm32 && features.f64
                                        ? rounding.inBoth()
                                        : rounding.inFloats());
    instruction->eraseFromParent();
  }
}

} // namespace costate::conversion
