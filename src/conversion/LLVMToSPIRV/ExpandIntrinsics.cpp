#include "conversion/LLVMToSPIRV/Prepare.h"

#include "llvm/ADT/FloatingPointMode.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace costate::conversion {
namespace {

constexpr unsigned wordBits = 32;

/// Computes what an intrinsic computes, of operations that SPIR-V has.
class Expansion {
public:
  Expansion(IntrinsicInst &call) : call(call), b(&call), type(call.getType()) {
    if (type->isIntOrIntVectorTy() || type->isFPOrFPVectorTy())
      bits = type->getScalarSizeInBits();
  }

  /// Null: it stays.
  Value *expand();

private:
  Value *arg(unsigned k) { return call.getArgOperand(k); }
  Value *one(Value *value, Intrinsic::ID id) {
    return b.CreateUnaryIntrinsic(id, value);
  }
  Type *intLike(Type *other) {
    return b.getIntNTy(other->getScalarSizeInBits());
  }
  Value *bitsOf(Value *value) {
    return b.CreateBitCast(value, intLike(value->getType()));
  }
  APInt signBit(Type *other) {
    return APInt::getSignMask(other->getScalarSizeInBits());
  }
  Value *isNan(Value *value) { return b.CreateFCmpUNO(value, value); }

  Value *withSignOf(Value *magnitude, Value *sign);
  Value *truncated(Value *value);
  Value *rounded(Value *value);
  Value *extremum(bool isMin, bool spreadsNan);
  Value *ordered(CmpInst::Predicate predicate) {
    return b.CreateSelect(b.CreateICmp(predicate, arg(0), arg(1)), arg(0),
                          arg(1));
  }
  Value *absolute();
  Value *sign(bool isSigned);
  Value *funnel(bool isLeft);
  Value *leadingZeros();
  Value *trailingZeros();
  Value *count();
  Value *reversedBits();
  Value *swappedBytes();
  Value *saturated(bool isSigned);
  Value *isOfClass();
  Value *pair(Value *value, Value *overflows);
  Value *addOverflows(bool isSigned);
  Value *subOverflows(bool isSigned);
  Value *mulOverflows(bool isSigned);
  Value *highProduct(Value *x, Value *y);
  Value *saturatedSum(bool isSigned, bool subtracts);

  /// The halves of an i64.
  Value *low(Value *value) { return b.CreateTrunc(value, b.getInt32Ty()); }
  Value *high(Value *value) { return low(b.CreateLShr(value, wordBits)); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty()); }
  Value *zeros(Value *value, Intrinsic::ID id) {
    return b.CreateIntrinsic(id, {value->getType()}, {value, b.getFalse()});
  }

  IntrinsicInst &call;
  IRBuilder<> b;
  Type *type;
  unsigned bits = 0;
};

Value *Expansion::withSignOf(Value *magnitude, Value *sign) {
  APInt mask = signBit(magnitude->getType());
  Type *word = intLike(magnitude->getType());
  Value *other = sign->getType() == magnitude->getType()
                     ? sign
                     : b.CreateFPCast(sign, magnitude->getType());
  Value *own = b.CreateAnd(bitsOf(magnitude), ConstantInt::get(word, ~mask));
  Value *given = b.CreateAnd(bitsOf(other), ConstantInt::get(word, mask));
  return b.CreateBitCast(b.CreateOr(own, given), magnitude->getType());
}

Value *Expansion::truncated(Value *value) {
  Value *magnitude = one(value, Intrinsic::fabs);
  return withSignOf(one(magnitude, Intrinsic::floor), value);
}

/// Halves away from zero.
Value *Expansion::rounded(Value *value) {
  Value *magnitude = one(value, Intrinsic::fabs);
  Value *whole = one(magnitude, Intrinsic::floor);
  Value *rest = b.CreateFSub(magnitude, whole);
  Value *isUp = b.CreateFCmpOGE(rest, ConstantFP::get(type, 0.5));
  Value *up = b.CreateFAdd(whole, ConstantFP::get(type, 1.0));
  return withSignOf(b.CreateSelect(isUp, up, whole), value);
}

/// -0 is less than 0. Of a NaN and a number, the NaN or the number.
Value *Expansion::extremum(bool isMin, bool spreadsNan) {
  Value *x = arg(0), *y = arg(1);
  Value *both = isMin ? b.CreateOr(bitsOf(x), bitsOf(y))
                      : b.CreateAnd(bitsOf(x), bitsOf(y));
  Value *isLess = isMin ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y);
  Value *result = b.CreateSelect(isLess, x, y);
  result = b.CreateSelect(b.CreateFCmpOEQ(x, y), b.CreateBitCast(both, type),
                          result);
  if (spreadsNan)
    return b.CreateSelect(isNan(x), x, result);
  return b.CreateSelect(isNan(y), x, result);
}

Value *Expansion::absolute() {
  Value *isNegative = b.CreateICmpSLT(arg(0), ConstantInt::get(type, 0));
  return b.CreateSelect(isNegative, b.CreateNeg(arg(0)), arg(0));
}

Value *Expansion::sign(bool isSigned) {
  Value *isLess = b.CreateICmp(isSigned ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT,
                               arg(0), arg(1));
  Value *isMore = b.CreateICmp(isSigned ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT,
                               arg(0), arg(1));
  return b.CreateSub(b.CreateZExt(isMore, type), b.CreateZExt(isLess, type));
}

Value *Expansion::funnel(bool isLeft) {
  Value *width = ConstantInt::get(type, bits);
  Value *shift = b.CreateURem(arg(2), width);
  Value *rest = b.CreateSub(width, shift);
  Value *none = ConstantInt::get(type, 0);
  Value *isNone = b.CreateICmpEQ(shift, none);
  Value *x = isLeft ? b.CreateShl(arg(0), shift) : b.CreateShl(arg(0), rest);
  Value *y = isLeft ? b.CreateLShr(arg(1), rest) : b.CreateLShr(arg(1), shift);
  return b.CreateSelect(isNone, isLeft ? arg(0) : arg(1), b.CreateOr(x, y));
}

Value *Expansion::leadingZeros() {
  if (bits == wordBits)
    return nullptr;
  if (bits < wordBits) {
    Value *word = b.CreateZExt(arg(0), b.getInt32Ty());
    Value *found = zeros(word, Intrinsic::ctlz);
    return b.CreateTrunc(b.CreateSub(found, b.getInt32(wordBits - bits)), type);
  }
  Value *top = high(arg(0));
  Value *above =
      b.CreateAdd(zeros(low(arg(0)), Intrinsic::ctlz), b.getInt32(wordBits));
  Value *isNone = b.CreateICmpEQ(top, b.getInt32(0));
  return wide(b.CreateSelect(isNone, above, zeros(top, Intrinsic::ctlz)));
}

Value *Expansion::trailingZeros() {
  if (bits == wordBits)
    return nullptr;
  if (bits < wordBits) {
    Value *word = b.CreateOr(b.CreateZExt(arg(0), b.getInt32Ty()),
                             b.getInt32(1u << bits));
    return b.CreateTrunc(zeros(word, Intrinsic::cttz), type);
  }
  Value *bottom = low(arg(0));
  Value *above =
      b.CreateAdd(zeros(high(arg(0)), Intrinsic::cttz), b.getInt32(wordBits));
  Value *isNone = b.CreateICmpEQ(bottom, b.getInt32(0));
  return wide(b.CreateSelect(isNone, above, zeros(bottom, Intrinsic::cttz)));
}

Value *Expansion::count() {
  if (bits == wordBits)
    return nullptr;
  if (bits < wordBits) {
    // At the top: a driver of NVIDIA extends what it counts by its sign.
    Value *word =
        b.CreateShl(b.CreateZExt(arg(0), b.getInt32Ty()), wordBits - bits);
    return b.CreateTrunc(one(word, Intrinsic::ctpop), type);
  }
  return wide(b.CreateAdd(one(low(arg(0)), Intrinsic::ctpop),
                          one(high(arg(0)), Intrinsic::ctpop)));
}

Value *Expansion::reversedBits() {
  if (bits == wordBits)
    return nullptr;
  if (bits < wordBits) {
    Value *word =
        one(b.CreateZExt(arg(0), b.getInt32Ty()), Intrinsic::bitreverse);
    return b.CreateTrunc(b.CreateLShr(word, wordBits - bits), type);
  }
  Value *top = wide(one(low(arg(0)), Intrinsic::bitreverse));
  return b.CreateOr(b.CreateShl(top, wordBits),
                    wide(one(high(arg(0)), Intrinsic::bitreverse)));
}

Value *Expansion::swappedBytes() {
  constexpr unsigned byte = 8;
  Value *result = ConstantInt::get(type, 0);
  for (unsigned at = 0; at < bits; at += byte) {
    Value *one =
        b.CreateAnd(b.CreateLShr(arg(0), at), ConstantInt::get(type, 0xff));
    result = b.CreateOr(result, b.CreateShl(one, bits - byte - at));
  }
  return result;
}

/// NaN gives 0.
Value *Expansion::saturated(bool isSigned) {
  Value *value = arg(0);
  const fltSemantics &semantics = value->getType()->getFltSemantics();
  APInt least = isSigned ? APInt::getSignedMinValue(bits) : APInt(bits, 0);
  APInt most =
      isSigned ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits);
  APFloat below(semantics), above(semantics);
  below.convertFromAPInt(least, isSigned, APFloat::rmTowardZero);
  above.convertFromAPInt(most, isSigned, APFloat::rmTowardZero);
  Value *isBelow =
      b.CreateFCmpOLE(value, ConstantFP::get(value->getType(), below));
  Value *isAbove =
      b.CreateFCmpOGT(value, ConstantFP::get(value->getType(), above));
  Value *isInside = b.CreateAnd(b.CreateNot(b.CreateOr(isBelow, isAbove)),
                                b.CreateNot(isNan(value)));
  Value *safe =
      b.CreateSelect(isInside, value, ConstantFP::get(value->getType(), 0.0));
  Value *number =
      isSigned ? b.CreateFPToSI(safe, type) : b.CreateFPToUI(safe, type);
  number = b.CreateSelect(isBelow, ConstantInt::get(type, least), number);
  return b.CreateSelect(isAbove, ConstantInt::get(type, most), number);
}

Value *Expansion::isOfClass() {
  Value *value = arg(0);
  Type *from = value->getType(), *word = intLike(from);
  auto classes =
      static_cast<FPClassTest>(cast<ConstantInt>(arg(1))->getZExtValue());
  const fltSemantics &semantics = from->getFltSemantics();
  APInt infinity = APFloat::getInf(semantics).bitcastToAPInt();
  APInt normal = APFloat::getSmallestNormalized(semantics).bitcastToAPInt();
  APInt quiet = APFloat::getQNaN(semantics).bitcastToAPInt();
  auto constant = [&](const APInt &n) { return ConstantInt::get(word, n); };
  Value *all = bitsOf(value);
  Value *size = b.CreateAnd(all, constant(~signBit(from)));
  Value *isNegative =
      b.CreateICmpSLT(all, constant(APInt(infinity.getBitWidth(), 0)));
  Value *isPositive = b.CreateNot(isNegative);
  Value *result = b.getFalse();
  auto add = [&](FPClassTest which, Value *holds) {
    if (classes & which)
      result = b.CreateOr(result, holds);
  };
  auto addSigned = [&](FPClassTest negative, FPClassTest positive,
                       Value *holds) {
    add(negative, b.CreateAnd(isNegative, holds));
    add(positive, b.CreateAnd(isPositive, holds));
  };
  Value *zero = constant(APInt(infinity.getBitWidth(), 0));
  add(fcSNan, b.CreateAnd(b.CreateICmpUGT(size, constant(infinity)),
                          b.CreateICmpULT(size, constant(quiet))));
  add(fcQNan, b.CreateICmpUGE(size, constant(quiet)));
  addSigned(fcNegInf, fcPosInf, b.CreateICmpEQ(size, constant(infinity)));
  addSigned(fcNegZero, fcPosZero, b.CreateICmpEQ(size, zero));
  addSigned(fcNegSubnormal, fcPosSubnormal,
            b.CreateAnd(b.CreateICmpNE(size, zero),
                        b.CreateICmpULT(size, constant(normal))));
  addSigned(fcNegNormal, fcPosNormal,
            b.CreateAnd(b.CreateICmpUGE(size, constant(normal)),
                        b.CreateICmpULT(size, constant(infinity))));
  return result;
}

Value *Expansion::pair(Value *value, Value *overflows) {
  Value *both = PoisonValue::get(type);
  return b.CreateInsertValue(b.CreateInsertValue(both, value, 0), overflows, 1);
}

Value *Expansion::addOverflows(bool isSigned) {
  Value *x = arg(0), *y = arg(1), *sum = b.CreateAdd(x, y);
  if (!isSigned)
    return pair(sum, b.CreateICmpULT(sum, x));
  Value *changes = b.CreateAnd(b.CreateXor(x, sum), b.CreateXor(y, sum));
  return pair(sum, b.CreateICmpSLT(changes, ConstantInt::get(x->getType(), 0)));
}

Value *Expansion::subOverflows(bool isSigned) {
  Value *x = arg(0), *y = arg(1), *rest = b.CreateSub(x, y);
  if (!isSigned)
    return pair(rest, b.CreateICmpULT(x, y));
  Value *changes = b.CreateAnd(b.CreateXor(x, y), b.CreateXor(x, rest));
  return pair(rest,
              b.CreateICmpSLT(changes, ConstantInt::get(x->getType(), 0)));
}

/// The upper 64 bits of the product of two u64.
Value *Expansion::highProduct(Value *x, Value *y) {
  Value *xl = b.CreateAnd(x, 0xffffffff), *xh = b.CreateLShr(x, wordBits);
  Value *yl = b.CreateAnd(y, 0xffffffff), *yh = b.CreateLShr(y, wordBits);
  Value *middle = b.CreateAdd(b.CreateMul(xh, yl),
                              b.CreateLShr(b.CreateMul(xl, yl), wordBits));
  Value *other =
      b.CreateAdd(b.CreateMul(xl, yh), b.CreateAnd(middle, 0xffffffff));
  return b.CreateAdd(b.CreateMul(xh, yh),
                     b.CreateAdd(b.CreateLShr(middle, wordBits),
                                 b.CreateLShr(other, wordBits)));
}

Value *Expansion::mulOverflows(bool isSigned) {
  Value *x = arg(0), *y = arg(1);
  Type *from = x->getType();
  unsigned width = from->getIntegerBitWidth();
  Value *product = b.CreateMul(x, y);
  if (width <= wordBits) {
    auto extended = [&](Value *value) {
      return isSigned ? b.CreateSExt(value, b.getInt64Ty()) : wide(value);
    };
    Value *exact = b.CreateMul(extended(x), extended(y));
    return pair(product, b.CreateICmpNE(exact, extended(product)));
  }
  Value *none = ConstantInt::get(from, 0);
  Value *top = highProduct(x, y);
  if (!isSigned)
    return pair(product, b.CreateICmpNE(top, none));
  auto ifNegative = [&](Value *value, Value *other) {
    return b.CreateSelect(b.CreateICmpSLT(value, none), other, none);
  };
  top = b.CreateSub(top, ifNegative(x, y));
  top = b.CreateSub(top, ifNegative(y, x));
  return pair(product, b.CreateICmpNE(top, b.CreateAShr(product, width - 1)));
}

Value *Expansion::saturatedSum(bool isSigned, bool subtracts) {
  Value *x = arg(0), *y = arg(1);
  Value *sum = subtracts ? b.CreateSub(x, y) : b.CreateAdd(x, y);
  if (!isSigned) {
    Value *overflows =
        subtracts ? b.CreateICmpULT(x, y) : b.CreateICmpULT(sum, x);
    return b.CreateSelect(overflows,
                          subtracts ? ConstantInt::get(type, 0)
                                    : Constant::getAllOnesValue(type),
                          sum);
  }
  Value *none = ConstantInt::get(type, 0);
  Value *changes = subtracts
                       ? b.CreateAnd(b.CreateXor(x, y), b.CreateXor(x, sum))
                       : b.CreateAnd(b.CreateXor(x, sum), b.CreateXor(y, sum));
  Value *limit =
      b.CreateXor(b.CreateAShr(x, bits - 1),
                  ConstantInt::get(type, APInt::getSignedMaxValue(bits)));
  return b.CreateSelect(b.CreateICmpSLT(changes, none), limit, sum);
}

Value *Expansion::expand() {
  switch (call.getIntrinsicID()) {
  case Intrinsic::copysign:
    return withSignOf(arg(0), arg(1));
  case Intrinsic::trunc:
    return truncated(arg(0));
  case Intrinsic::round:
    return rounded(arg(0));
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
    return one(arg(0), Intrinsic::roundeven);
  case Intrinsic::minnum:
  case Intrinsic::minimumnum:
    return extremum(true, false);
  case Intrinsic::maxnum:
  case Intrinsic::maximumnum:
    return extremum(false, false);
  case Intrinsic::minimum:
    return extremum(true, true);
  case Intrinsic::maximum:
    return extremum(false, true);
  case Intrinsic::smin:
    return ordered(CmpInst::ICMP_SLT);
  case Intrinsic::smax:
    return ordered(CmpInst::ICMP_SGT);
  case Intrinsic::umin:
    return ordered(CmpInst::ICMP_ULT);
  case Intrinsic::umax:
    return ordered(CmpInst::ICMP_UGT);
  case Intrinsic::abs:
    return absolute();
  case Intrinsic::scmp:
    return sign(true);
  case Intrinsic::ucmp:
    return sign(false);
  case Intrinsic::fshl:
    return funnel(true);
  case Intrinsic::fshr:
    return funnel(false);
  case Intrinsic::ctlz:
    return leadingZeros();
  case Intrinsic::cttz:
    return trailingZeros();
  case Intrinsic::ctpop:
    return count();
  case Intrinsic::bitreverse:
    return reversedBits();
  case Intrinsic::bswap:
    return swappedBytes();
  case Intrinsic::fptosi_sat:
    return saturated(true);
  case Intrinsic::fptoui_sat:
    return saturated(false);
  case Intrinsic::is_fpclass:
    return isOfClass();
  case Intrinsic::sadd_with_overflow:
    return addOverflows(true);
  case Intrinsic::uadd_with_overflow:
    return addOverflows(false);
  case Intrinsic::ssub_with_overflow:
    return subOverflows(true);
  case Intrinsic::usub_with_overflow:
    return subOverflows(false);
  case Intrinsic::smul_with_overflow:
    return mulOverflows(true);
  case Intrinsic::umul_with_overflow:
    return mulOverflows(false);
  case Intrinsic::sadd_sat:
    return saturatedSum(true, false);
  case Intrinsic::uadd_sat:
    return saturatedSum(false, false);
  case Intrinsic::ssub_sat:
    return saturatedSum(true, true);
  case Intrinsic::usub_sat:
    return saturatedSum(false, true);
  default:
    return nullptr;
  }
}

/// Those that say something to the compiler only.
bool isHint(const IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::assume:
  case Intrinsic::lifetime_start:
  case Intrinsic::lifetime_end:
  case Intrinsic::experimental_noalias_scope_decl:
  case Intrinsic::invariant_start:
  case Intrinsic::invariant_end:
  case Intrinsic::prefetch:
    return call.use_empty();
  default:
    return false;
  }
}

} // namespace

bool expandIntrinsics(Function &function) {
  bool hasChanged = false;
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    if (!call)
      continue;
    if (Value *value = isHint(*call) ? nullptr : Expansion(*call).expand())
      call->replaceAllUsesWith(value);
    else if (!isHint(*call))
      continue;
    call->eraseFromParent();
    hasChanged = true;
  }
  return hasChanged;
}

} // namespace costate::conversion
