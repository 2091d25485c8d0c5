#include "ir/Division.h"

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::ir {
namespace {

using Builder = ImplicitLocOpBuilder;
using Values = SmallVector<Value>;

Value constant(Builder &b, int64_t value, unsigned bits = 64) {
  return arith::ConstantOp::create(
      b, b.getIntegerAttr(b.getIntegerType(bits), value));
}

Value lowHalf(Builder &b, Value value) {
  return b.createOrFold<arith::TruncIOp>(b.getI32Type(), value);
}

Value highHalf(Builder &b, Value value) {
  return b.createOrFold<arith::ShRUIOp>(value, constant(b, 32));
}

Value wide(Builder &b, Value value) {
  return b.createOrFold<arith::ExtUIOp>(b.getI64Type(), value);
}

/// x * y + y + z
Value multiplyAdd(Builder &b, Value x, Value y, Value z) {
  Value product = arith::MulIOp::create(b, wide(b, x), y);
  return arith::AddIOp::create(b, product, arith::AddIOp::create(b, y, z));
}

/// (floor((2^64 - 1) / divisor) * (number + 1)) >> 64
Value quotient(Builder &b, Value number, const Divisor &divisor) {
  if (matchPattern(divisor.number, m_One()))
    return number;
  if (!divisor.low)
    return DivOp::create(b, b.getI32Type(), number, divisor.number,
                         /*isUnsigned=*/true);
  Value below = multiplyAdd(b, number, wide(b, divisor.low), constant(b, 0));
  Value all = multiplyAdd(b, number, wide(b, divisor.high), highHalf(b, below));
  return lowHalf(b, highHalf(b, all));
}

Values byMultiplication(Builder &b, Value number, ArrayRef<Divisor> divisors) {
  Values indices(divisors.size() + 1);
  number = lowHalf(b, number);
  for (unsigned d = divisors.size(); d > 0; --d) {
    const Divisor &divisor = divisors[d - 1];
    Value next = quotient(b, number, divisor);
    Value before = b.createOrFold<arith::MulIOp>(next, divisor.number);
    indices[d] = wide(b, b.createOrFold<arith::SubIOp>(number, before));
    number = next;
  }
  indices[0] = wide(b, number);
  return indices;
}

} // namespace

Divisor Divisor::of(Builder &b, Value number) {
  number = b.createOrFold<arith::MaxSIOp>(number, constant(b, 1));
  if (matchPattern(number, m_Constant()))
    return {lowHalf(b, number), {}, {}};
  Value reciprocal = DivOp::create(b, b.getI64Type(), constant(b, -1), number,
                                   /*isUnsigned=*/true);
  return {lowHalf(b, number), lowHalf(b, reciprocal),
          lowHalf(b, highHalf(b, reciprocal))};
}

Value isNarrow(Builder &b, Value count) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, count,
                                       constant(b, int64_t(1) << 31));
}

Values indicesOf(Builder &b, Value number, ValueRange extents) {
  Values indices(extents.size());
  Type type = number.getType();
  for (unsigned d = extents.size() - 1; d > 0; --d) {
    indices[d] =
        RemOp::create(b, type, number, extents[d], /*isUnsigned=*/true);
    number = DivOp::create(b, type, number, extents[d], /*isUnsigned=*/true);
  }
  indices[0] = number;
  return indices;
}

Values indicesOf(Builder &b, Value number, ValueRange extents,
                 ArrayRef<Divisor> divisors, Value isNarrow) {
  if (extents.size() == 1)
    return {number};
  Values types(extents.size(), number);
  auto branch = scf::IfOp::create(b, ValueRange(types).getTypes(), isNarrow,
                                  /*withElseRegion=*/true);
  Builder then(b.getLoc(), branch.getThenRegion());
  scf::YieldOp::create(then, byMultiplication(then, number, divisors));
  Builder otherwise(b.getLoc(), branch.getElseRegion());
  scf::YieldOp::create(otherwise, indicesOf(otherwise, number, extents));
  return Values(branch.getResults());
}

} // namespace costate::ir
