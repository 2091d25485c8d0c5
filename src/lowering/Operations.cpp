#include "lowering/Operations.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using SyntaxOp = costate::syntax::Op;

namespace costate::lowering {

static bool isNarrow(DType type) {
  return type != DType::Bool && sizeOf(type) < 4;
}

Type typeOf(MLIRContext *context, DType type) {
  if (isFloat(type))
    return type == DType::F64 ? Type(Float64Type::get(context))
                              : Float32Type::get(context);
  if (type == DType::Bool)
    return IntegerType::get(context, 1);
  return IntegerType::get(context, isNarrow(type) ? 32 : 8 * sizeOf(type));
}

Type elementTypeOf(MLIRContext *context, DType type) {
  if (type == DType::F16)
    return Float16Type::get(context);
  if (isFloat(type) || type == DType::Bool)
    return typeOf(context, type);
  return IntegerType::get(context, 8 * sizeOf(type),
                          isUnsigned(type) ? IntegerType::Unsigned
                                           : IntegerType::Signless);
}

Type localTypeOf(MLIRContext *context, DType type) {
  return isNarrow(type) ? elementTypeOf(context, type) : typeOf(context, type);
}

static Value floatConstant(OpBuilder &b, Location loc, DType type,
                           uint64_t bits) {
  auto floating = cast<FloatType>(elementTypeOf(b.getContext(), type));
  auto valueType = cast<FloatType>(typeOf(b.getContext(), type));
  APFloat value(floating.getFloatSemantics(),
                APInt(floating.getWidth(), bits, false, true));
  bool inexact;
  value.convert(valueType.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                &inexact);
  return arith::ConstantOp::create(b, loc, FloatAttr::get(valueType, value));
}

Value emitConstant(OpBuilder &b, Location loc, DType type, uint64_t bits) {
  if (isFloat(type))
    return floatConstant(b, loc, type, bits);
  Type valueType = typeOf(b.getContext(), type);
  unsigned width = valueType.getIntOrFloatBitWidth();
  unsigned own = isNarrow(type) ? 8 * sizeOf(type) : width;
  APInt value(own, bits, false, true);
  value = isUnsigned(type) ? value.zext(width) : value.sext(width);
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(valueType, value));
}

namespace {

/// One operation to be emitted.
struct Emission {
  OpBuilder &b;
  Location loc;
  SyntaxOp op;
  DType from, to;
  ValueRange operands;

  template <class T> Value unary() { return T::create(b, loc, operands[0]); }
  template <class T> Value binary() {
    return T::create(b, loc, operands[0], operands[1]);
  }
  template <class OnFloats, class OnIntegers> Value arithmetic() {
    return isFloat(from) ? binary<OnFloats>() : binary<OnIntegers>();
  }
  template <class OnFloats, class OnIntegers> Value division() {
    if (isFloat(from))
      return binary<OnFloats>();
    return OnIntegers::create(b, loc, operands[0], operands[1],
                              isUnsigned(from));
  }
  template <class Signed, class Unsigned> Value ofIntegers(Value x, Value y) {
    if (isUnsigned(from))
      return Unsigned::create(b, loc, x, y);
    return Signed::create(b, loc, x, y);
  }
  template <class OnFloats, class Signed, class Unsigned> Value extremum() {
    if (isFloat(from))
      return binary<OnFloats>();
    return ofIntegers<Signed, Unsigned>(operands[0], operands[1]);
  }
  template <class T> Value shift() {
    Value count = operands[1];
    if (isNarrow(from)) {
      Value mask = emitConstant(b, loc, from, 8 * sizeOf(from) - 1);
      count = arith::AndIOp::create(b, loc, count, mask);
    }
    return T::create(b, loc, operands[0], count, isUnsigned(from));
  }
  Value ownBits();
  Value zero() { return emitConstant(b, loc, from, 0); }
  Type result() { return typeOf(b.getContext(), to); }
  template <class T> Value convert() {
    return T::create(b, loc, result(), operands[0]);
  }

  Value emit();
  Value wide();
  Value narrow(Value value);
  bool staysNarrow();
  Value bounded(arith::CmpFPredicate outside, Value x, Value bound);
  Value compare(arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofSigned,
                arith::CmpIPredicate ofUnsigned);
  Value castToBool();
  Value castToInteger();
  Value castBetweenIntegers();
  Value ordinalOfFloat();
  Value bitsOfHalf();
  Value halfOfBits();

#define COSTATE_OPERATION(Name, ...) Value emit##Name();
#include "costate/detail/operations.def"
};

//===-- Arithmetic --------------------------------------------------------===//

Value Emission::emitNeg() {
  if (isFloat(from))
    return unary<arith::NegFOp>();
  return arith::SubIOp::create(b, loc, zero(), operands[0]);
}

Value Emission::emitAdd() { return arithmetic<arith::AddFOp, arith::AddIOp>(); }
Value Emission::emitSub() { return arithmetic<arith::SubFOp, arith::SubIOp>(); }
Value Emission::emitMul() { return arithmetic<arith::MulFOp, arith::MulIOp>(); }
Value Emission::emitDiv() { return division<arith::DivFOp, ir::DivOp>(); }
Value Emission::emitRem() { return division<arith::RemFOp, ir::RemOp>(); }

Value Emission::emitMin() {
  return extremum<arith::MinNumFOp, arith::MinSIOp, arith::MinUIOp>();
}

Value Emission::emitMax() {
  return extremum<arith::MaxNumFOp, arith::MaxSIOp, arith::MaxUIOp>();
}

/// `bound` where x is outside of it or NaN, else x: unlike min and max it does
/// not share its derivative with the bound on a tie.
Value Emission::bounded(arith::CmpFPredicate outside, Value x, Value bound) {
  Value beyond = arith::CmpFOp::create(b, loc, outside, x, bound);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value takesBound = arith::OrIOp::create(b, loc, beyond, isNaN);
  return arith::SelectOp::create(b, loc, takesBound, bound, x);
}

Value Emission::emitClamp() {
  using Predicate = arith::CmpFPredicate;
  if (isFloat(from)) {
    Value above = bounded(Predicate::OLT, operands[0], operands[1]);
    return bounded(Predicate::OGT, above, operands[2]);
  }
  Value above =
      ofIntegers<arith::MaxSIOp, arith::MaxUIOp>(operands[0], operands[1]);
  return ofIntegers<arith::MinSIOp, arith::MinUIOp>(above, operands[2]);
}

Value Emission::emitAbs() {
  if (isFloat(from))
    return unary<math::AbsFOp>();
  return isUnsigned(from) ? operands[0] : unary<math::AbsIOp>();
}

//===-- Bits --------------------------------------------------------------===//

/// The operand, with zeros above the bits of its type.
Value Emission::ownBits() {
  if (!isNarrow(from) || isUnsigned(from))
    return operands[0];
  Value mask =
      emitConstant(b, loc, DType::U32, (uint64_t(1) << 8 * sizeOf(from)) - 1);
  return arith::AndIOp::create(b, loc, operands[0], mask);
}

Value Emission::emitAnd() { return binary<arith::AndIOp>(); }
Value Emission::emitOr() { return binary<arith::OrIOp>(); }
Value Emission::emitXor() { return binary<arith::XOrIOp>(); }
Value Emission::emitShl() { return shift<ir::ShlOp>(); }
Value Emission::emitShr() { return shift<ir::ShrOp>(); }

Value Emission::emitNot() {
  Value ones = emitConstant(b, loc, from, ~uint64_t(0));
  return arith::XOrIOp::create(b, loc, operands[0], ones);
}

Value Emission::emitPopcnt() {
  return math::CtPopOp::create(b, loc, ownBits());
}

Value Emission::emitClz() {
  Value count = math::CountLeadingZerosOp::create(b, loc, ownBits());
  if (!isNarrow(from))
    return count;
  Value above = emitConstant(b, loc, DType::U32, 32 - 8 * sizeOf(from));
  return arith::SubIOp::create(b, loc, count, above);
}

Value Emission::emitPhilox() {
  return ir::PhiloxOp::create(b, loc, operands[0], operands[1], operands[2]);
}

//===-- Functions ---------------------------------------------------------===//

#define COSTATE_OPERATION(...)
#define COSTATE_INSTRUCTION(Name, ...)                                         \
  Value Emission::emit##Name() { return unary<math::Name##Op>(); }
#define COSTATE_FUNCTION(Name, ...)                                            \
  Value Emission::emit##Name() {                                               \
    return ir::Name##Op::create(b, loc, operands);                             \
  }
#include "costate/detail/operations.def"

Value Emission::emitFma() {
  return math::FmaOp::create(b, loc, operands[0], operands[1], operands[2]);
}

Value Emission::emitStopGradient() { return unary<ir::StopGradientOp>(); }

Value Emission::emitByOrder() {
  return ir::ByOrderOp::create(b, loc, operands[0].getType(), operands);
}

//===-- Comparisons and conversions ---------------------------------------===//

Value Emission::compare(arith::CmpFPredicate ofFloats,
                        arith::CmpIPredicate ofSigned,
                        arith::CmpIPredicate ofUnsigned) {
  if (isFloat(from))
    return arith::CmpFOp::create(b, loc, ofFloats, operands[0], operands[1]);
  return arith::CmpIOp::create(b, loc, isUnsigned(from) ? ofUnsigned : ofSigned,
                               operands[0], operands[1]);
}

using F = arith::CmpFPredicate;
using I = arith::CmpIPredicate;
Value Emission::emitLt() { return compare(F::OLT, I::slt, I::ult); }
Value Emission::emitLe() { return compare(F::OLE, I::sle, I::ule); }
Value Emission::emitGt() { return compare(F::OGT, I::sgt, I::ugt); }
Value Emission::emitGe() { return compare(F::OGE, I::sge, I::uge); }
Value Emission::emitEq() { return compare(F::OEQ, I::eq, I::eq); }
Value Emission::emitNe() { return compare(F::UNE, I::ne, I::ne); }

Value Emission::emitSelect() {
  return arith::SelectOp::create(b, loc, operands[0], operands[1], operands[2]);
}

Value Emission::castToBool() {
  if (isFloat(from))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, operands[0],
                                 zero());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, operands[0],
                               zero());
}

Value Emission::castBetweenIntegers() {
  Type type = operands[0].getType();
  if (type == result())
    return operands[0];
  if (type.getIntOrFloatBitWidth() > result().getIntOrFloatBitWidth())
    return convert<arith::TruncIOp>();
  if (from == DType::Bool || isUnsigned(from))
    return convert<arith::ExtUIOp>();
  return convert<arith::ExtSIOp>();
}

/// Saturates at the largest numbers of a narrow type, too.
Value Emission::castToInteger() {
  Value value =
      ir::ToIntOp::create(b, loc, result(), operands[0], isUnsigned(to));
  if (!isNarrow(to))
    return value;
  unsigned digits = 8 * sizeOf(to) - !isUnsigned(to);
  Value most = emitConstant(b, loc, to, (uint64_t(1) << digits) - 1);
  if (isUnsigned(to))
    return arith::MinUIOp::create(b, loc, value, most);
  Value least = emitConstant(b, loc, to, uint64_t(1) << digits);
  value = arith::MinSIOp::create(b, loc, value, most);
  return arith::MaxSIOp::create(b, loc, value, least);
}

Value Emission::emitCast() {
  if (from == to)
    return operands[0];
  if (to == DType::Bool)
    return castToBool();
  if (to == DType::F16 && from == DType::F64)
    return operands[0]; // rounded once
  if (isFloat(from) && isFloat(to) && operands[0].getType() != result())
    return to == DType::F64 ? convert<arith::ExtFOp>()
                            : convert<arith::TruncFOp>();
  if (isFloat(from) && isFloat(to))
    return operands[0];
  if (isFloat(from))
    return castToInteger();
  if (!isFloat(to))
    return castBetweenIntegers();
  return from == DType::Bool || isUnsigned(from) ? convert<arith::UIToFPOp>()
                                                 : convert<arith::SIToFPOp>();
}

/// The bits of a float without its sign are in the order of the numbers. They
/// have no derivative.
Value Emission::ordinalOfFloat() {
  Type i64 = b.getI64Type(), f64 = b.getF64Type();
  auto number = [&](int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  Value x = ir::StopGradientOp::create(b, loc, operands[0]);
  if (!x.getType().isF64())
    x = arith::ExtFOp::create(b, loc, f64, x);
  Value bits = arith::BitcastOp::create(b, loc, i64, x);
  Value sign = arith::ShRSIOp::create(b, loc, bits, number(63));
  Value flipped = arith::AndIOp::create(b, loc, sign, number(INT64_MAX));
  Value order = arith::XOrIOp::create(b, loc, bits, flipped);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  return arith::SelectOp::create(b, loc, isNaN, number(INT64_MAX), order);
}

Value Emission::emitOrdinal() {
  if (isFloat(from))
    return ordinalOfFloat();
  Value wide = castBetweenIntegers();
  if (from != DType::U64)
    return wide;
  Value sign =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(INT64_MIN));
  return arith::XOrIOp::create(b, loc, wide, sign);
}

/// Whether the operation, done on what holds narrow numbers, gives one.
bool Emission::staysNarrow() {
  using enum SyntaxOp;
  if (op == Cast)
    return from == to || from == DType::Bool ||
           (isFloat(from) && !isFloat(to)) ||
           (isInteger(from) && isInteger(to) && sizeOf(from) < sizeOf(to) &&
            (isUnsigned(from) || !isUnsigned(to)));
  if (op == Neg || op == Abs)
    return isFloat(to);
  static constexpr SyntaxOp choosing[] = {
      Rem,    Min, Max,   Clamp, And,   Or,    Xor,    Not,         Shr,
      Popcnt, Clz, Floor, Ceil,  Round, Trunc, Select, StopGradient};
  return llvm::is_contained(choosing, op);
}

Value Emission::narrow(Value value) {
  return b.createOrFold<ir::NarrowOp>(loc, value,
                                      elementTypeOf(b.getContext(), to));
}

Value Emission::emit() {
  Value value = wide();
  return isNarrow(to) && !staysNarrow() ? narrow(value) : value;
}

/// Operations on 32 bits.
struct Bits {
  OpBuilder &b;
  Location loc;

  Value number(uint32_t value) {
    return emitConstant(b, loc, DType::U32, value);
  }
  Value apply(SyntaxOp op, Value x, uint32_t y) {
    return apply(op, x, number(y));
  }
  Value apply(SyntaxOp op, Value x, Value y) {
    return emitPure(b, loc, op, DType::U32, DType::U32, {x, y});
  }
  Value as(SyntaxOp op, DType from, DType to, Value x) {
    return emitPure(b, loc, op, from, to, x);
  }
  Value times(Value x, float y) {
    Value factor =
        emitConstant(b, loc, DType::F32, llvm::bit_cast<uint32_t>(y));
    return emitPure(b, loc, SyntaxOp::Mul, DType::F32, DType::F32, {x, factor});
  }
  /// One of two numbers, by whether x is less.
  Value choose(Value x, uint32_t bound, Value less, Value other) {
    Value isLess = emitPure(b, loc, SyntaxOp::Lt, DType::U32, DType::Bool,
                            {x, number(bound)});
    return arith::SelectOp::create(b, loc, isLess, less, other);
  }
};

/// Those of an f16, from the f32 that holds it: exponents are 112 more, or 224
/// of what is no finite number; subnormal ones are multiples of 2^-24.
Value Emission::bitsOfHalf() {
  Bits bits{b, loc};
  Value all = bits.as(SyntaxOp::BitCast, DType::F32, DType::U32, operands[0]);
  Value size = bits.apply(SyntaxOp::And, all, 0x7fffffff);
  Value sign =
      bits.apply(SyntaxOp::And, bits.apply(SyntaxOp::Shr, all, 16), 0x8000);
  Value more = bits.choose(size, 0x7f800000, bits.number(112 << 10),
                           bits.number(224 << 10));
  Value normal =
      bits.apply(SyntaxOp::Sub, bits.apply(SyntaxOp::Shr, size, 13), more);
  Value magnitude = bits.as(SyntaxOp::BitCast, DType::U32, DType::F32, size);
  Value multiple = bits.as(SyntaxOp::Cast, DType::F32, DType::U32,
                           bits.times(magnitude, 0x1p24f));
  return bits.apply(SyntaxOp::Or, sign,
                    bits.choose(size, 0x38800000, multiple, normal));
}

/// The f32 that holds the f16 of these bits.
Value Emission::halfOfBits() {
  Bits bits{b, loc};
  Value size = bits.apply(SyntaxOp::And, operands[0], 0x7fff);
  Value sign = bits.apply(SyntaxOp::Shl,
                          bits.apply(SyntaxOp::And, operands[0], 0x8000), 16);
  Value more =
      bits.choose(size, 0x7c00, bits.number(112 << 23), bits.number(224 << 23));
  Value normal =
      bits.apply(SyntaxOp::Add, bits.apply(SyntaxOp::Shl, size, 13), more);
  Value multiple = bits.times(
      bits.as(SyntaxOp::Cast, DType::U32, DType::F32, size), 0x1p-24f);
  Value subnormal =
      bits.as(SyntaxOp::BitCast, DType::F32, DType::U32, multiple);
  Value all = bits.apply(SyntaxOp::Or, sign,
                         bits.choose(size, 0x400, subnormal, normal));
  return bits.as(SyntaxOp::BitCast, DType::U32, DType::F32, all);
}

Value Emission::emitBitCast() {
  if (from == DType::F16 && to != DType::F16)
    return bitsOfHalf();
  if (to == DType::F16 && from != DType::F16)
    return halfOfBits();
  return operands[0].getType() == result() ? operands[0]
                                           : convert<arith::BitcastOp>();
}

Value Emission::wide() {
  switch (op) {
#define COSTATE_OPERATION(Name, ...)                                           \
  case SyntaxOp::Name:                                                         \
    return emit##Name();
#include "costate/detail/operations.def"
  }
  llvm_unreachable("not an operation");
}

} // namespace

Value emitPure(OpBuilder &b, Location loc, SyntaxOp op, DType from, DType to,
               ValueRange operands) {
  return Emission{b, loc, op, from, to, operands}.emit();
}

} // namespace costate::lowering
