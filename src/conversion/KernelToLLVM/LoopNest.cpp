#include "conversion/KernelToLLVM/LoopNest.h"

#include "ir/Division.h"

using namespace mlir;

namespace costate::conversion {

Summation Summation::of(ir::RangeOp range) {
  if (range.getNumResults() == 0 || isa<FloatType>(range.getResultTypes()[0]))
    return {costateFloatSums};
  return {range.getMinima() ? costateLeastPair : costateIntegerSums};
}

Value Summation::none(ImplicitLocOpBuilder &b) const {
  if (kind == costateFloatSums)
    return arith::ConstantOp::create(b, b.getF64FloatAttr(0.0));
  return constant(b, kind == costateLeastPair ? INT64_MAX : 0);
}

/// A sum of floats that is split into partial ones has another order, which
/// still depends on the chunk only.
static Value addTo(ImplicitLocOpBuilder &b, Value sum, Value term,
                   bool inAnyOrder) {
  auto flags =
      inAnyOrder ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none;
  if (isa<FloatType>(sum.getType()))
    return arith::AddFOp::create(b, sum, term, flags);
  return arith::AddIOp::create(b, sum, term);
}

SmallVector<Value> Summation::add(ImplicitLocOpBuilder &b, ValueRange sums,
                                  ValueRange terms, bool inAnyOrder) const {
  SmallVector<Value> next;
  if (kind != costateLeastPair) {
    for (auto [sum, term] : llvm::zip_equal(sums, terms))
      next.push_back(addTo(b, sum, term, inAnyOrder));
    return next;
  }
  using P = arith::CmpIPredicate;
  Value isLess = arith::CmpIOp::create(b, P::slt, terms[0], sums[0]);
  Value isSame = arith::CmpIOp::create(b, P::eq, terms[0], sums[0]);
  Value isFirst = arith::CmpIOp::create(b, P::slt, terms[1], sums[1]);
  Value tie = arith::AndIOp::create(b, isSame, isFirst);
  Value place = arith::SelectOp::create(b, tie, terms[1], sums[1]);
  next.push_back(arith::MinSIOp::create(b, sums[0], terms[0]));
  next.push_back(arith::SelectOp::create(b, isLess, terms[1], place));
  return next;
}

Value Summation::term(ImplicitLocOpBuilder &b, Value value) const {
  if (!value.getType().isF32())
    return value;
  return arith::ExtFOp::create(b, b.getF64Type(), value);
}

namespace {

using Values = SmallVector<Value>;

/// for (k = lo; k < hi; ++k) workItem(outer..., k)
Values emitRow(ImplicitLocOpBuilder &builder, Value lo, Value hi,
               ValueRange outer, ValueRange sums, Summation summation,
               WorkItem workItem) {
  if (summation.kind == costateLeastPair)
    return emitLeastPair(builder, summation.memory, lo, hi, outer, sums,
                         workItem);
  Value one = constant(builder, 1);
  auto body = [&](OpBuilder &nested, Location loc, Value k, ValueRange args) {
    ImplicitLocOpBuilder inner(loc, nested);
    Values indices(outer);
    indices.push_back(k);
    Values terms = workItem(inner, indices);
    scf::YieldOp::create(
        inner, summation.add(inner, args, terms, /*inAnyOrder=*/true));
  };
  auto loop = scf::ForOp::create(builder, lo, hi, one, sums, body);
  loop->setAttr(rowAttr, builder.getUnitAttr());
  return Values(loop.getResults());
}

/// The indices of the row after `outer`.
Values nextRow(ImplicitLocOpBuilder &builder, ValueRange outer,
               ValueRange extents) {
  Values next(outer);
  Value zero = constant(builder, 0), one = constant(builder, 1), carry;
  for (unsigned d = outer.size(); d-- > 0;) {
    Value bumped = arith::AddIOp::create(builder, outer[d], one);
    if (carry)
      bumped = arith::SelectOp::create(builder, carry, bumped, outer[d]);
    if (d == 0) {
      next[d] = bumped;
      break;
    }
    carry = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, bumped,
                                  extents[d]);
    next[d] = arith::SelectOp::create(builder, carry, zero, bumped);
  }
  return next;
}

/// The loop over rows; it carries the number of the next work item, that
/// work item's index in its row, the outer indices and the sums.
class Rows {
public:
  Rows(ImplicitLocOpBuilder &builder, Value end, ValueRange extents,
       Summation summation, WorkItem workItem)
      : builder(builder), end(end), extents(extents), summation(summation),
        workItem(workItem) {}

  Values emit(Value begin, Values sums) {
    Values carried = {begin};
    Values indices = ir::indicesOf(builder, begin, extents);
    carried.push_back(indices.pop_back_val());
    llvm::append_range(carried, indices);
    llvm::append_range(carried, sums);
    auto loop = scf::WhileOp::create(
        builder, TypeRange(ValueRange(carried)), carried,
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             args[0], end);
          scf::ConditionOp::create(b, loc, more, args);
        },
        [&](OpBuilder &b, Location loc, ValueRange args) {
          ImplicitLocOpBuilder inner(loc, b);
          scf::YieldOp::create(inner, row(inner, args));
        });
    return Values(loop.getResults().drop_front(1 + extents.size()));
  }

private:
  /// One row, and what the next one starts with.
  Values row(ImplicitLocOpBuilder &b, ValueRange args) {
    Value number = args[0], first = args[1];
    ValueRange outer = args.slice(2, extents.size() - 1);
    Value toRowEnd = arith::SubIOp::create(b, extents.back(), first);
    Value toEnd = arith::SubIOp::create(b, end, number);
    Value length = arith::MinUIOp::create(b, toRowEnd, toEnd);
    Value last = arith::AddIOp::create(b, first, length);
    Values sums =
        emitRow(b, first, last, outer, args.drop_front(1 + extents.size()),
                summation, workItem);
    Values next = {arith::AddIOp::create(b, number, length), constant(b, 0)};
    llvm::append_range(next, nextRow(b, outer, extents));
    llvm::append_range(next, sums);
    return next;
  }

  ImplicitLocOpBuilder &builder;
  Value end;
  ValueRange extents;
  Summation summation;
  WorkItem workItem;
};

} // namespace

SmallVector<Value> emitLoops(ImplicitLocOpBuilder &builder, Value begin,
                             Value end, ValueRange extents, unsigned sumCount,
                             Summation summation, WorkItem workItem) {
  Values sums;
  for (unsigned k = 0; k < sumCount; ++k)
    sums.push_back(summation.none(builder));
  if (summation.kind == costateLeastPair)
    summation.memory = allocatePairs(builder);
  if (extents.size() == 1)
    return emitRow(builder, begin, end, {}, sums, summation, workItem);
  return Rows(builder, end, extents, summation, workItem).emit(begin, sums);
}

} // namespace costate::conversion
