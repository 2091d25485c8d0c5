#include "autodiff/gather/Numbers.h"

#include "ir/Division.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

using Builder = ImplicitLocOpBuilder;
using Values = SmallVector<Value>;

/// A part of the border: the elements in [lows, highs).
struct Slab {
  Values lows, highs;
};

Value difference(Builder &b, Value high, Value low) {
  return b.createOrFold<arith::SubIOp>(high, low);
}

Value volume(Builder &b, ValueRange lows, ValueRange highs) {
  Value product;
  for (auto [low, high] : llvm::zip(lows, highs)) {
    Value length = difference(b, high, low);
    product = product ? b.createOrFold<arith::MulIOp>(product, length) : length;
  }
  return product;
}

Slab interior(ArrayRef<Cut> cuts) {
  Slab slab;
  for (const Cut &cut : cuts) {
    slab.lows.push_back(cut.from);
    slab.highs.push_back(cut.to);
  }
  return slab;
}

/// In front of the interior in dimension `p`, or behind it; in earlier
/// dimensions inside.
Slab slabOf(ArrayRef<Cut> cuts, unsigned p, bool behind) {
  Slab slab = interior(cuts);
  slab.lows[p] = behind ? cuts[p].to : cuts[p].low;
  slab.highs[p] = behind ? cuts[p].high : cuts[p].from;
  for (unsigned q = p + 1; q < cuts.size(); ++q) {
    slab.lows[q] = cuts[q].low;
    slab.highs[q] = cuts[q].high;
  }
  return slab;
}

Values lengthsOf(Builder &b, const Slab &slab) {
  Values lengths;
  for (auto [low, high] : llvm::zip(slab.lows, slab.highs))
    lengths.push_back(difference(b, high, low));
  return lengths;
}

Values behind(Builder &b, ValueRange lows, Values indices) {
  for (auto [low, index] : llvm::zip(lows, indices))
    index = b.createOrFold<arith::AddIOp>(index, low);
  return indices;
}

} // namespace

Cut cutBetween(Builder &b, Value low, Value from, Value to, Value high) {
  auto clamp = [&](Value value, Value least) {
    value = b.createOrFold<arith::MinSIOp>(value, high);
    return b.createOrFold<arith::MaxSIOp>(value, least);
  };
  high = b.createOrFold<arith::MaxSIOp>(high, low);
  from = clamp(from, low);
  return {low, from, clamp(to, from), high};
}

Value countAll(Builder &b, ArrayRef<Cut> cuts) {
  Values lows, highs;
  for (const Cut &cut : cuts) {
    lows.push_back(cut.low);
    highs.push_back(cut.high);
  }
  return volume(b, lows, highs);
}

Value countInside(Builder &b, ArrayRef<Cut> cuts) {
  Slab slab = interior(cuts);
  return volume(b, slab.lows, slab.highs);
}

Values elementInside(Builder &front, Builder &b, ArrayRef<Cut> cuts,
                     Value number) {
  Slab slab = interior(cuts);
  Values lengths = lengthsOf(front, slab);
  SmallVector<ir::Divisor> divisors;
  for (Value length : ArrayRef(lengths).drop_front())
    divisors.push_back(ir::Divisor::of(front, length));
  Value isNarrow = ir::isNarrow(front, countAll(front, cuts));
  return behind(b, slab.lows,
                ir::indicesOf(b, number, lengths, divisors, isNarrow));
}

Values elementOfBorder(Builder &front, Builder &b, ArrayRef<Cut> cuts,
                       Value number) {
  Slab mine;
  Value start, end;
  auto choose = [&](Value isThere, Value &old, Value next) {
    old = b.createOrFold<arith::SelectOp>(isThere, next, old);
  };
  for (unsigned p = 0; p < cuts.size(); ++p)
    for (bool behind : {false, true}) {
      Slab next = slabOf(cuts, p, behind);
      Value count = volume(front, next.lows, next.highs);
      if (!end) {
        mine = next;
        end = count;
        start = arith::ConstantOp::create(front, front.getI64IntegerAttr(0));
        continue;
      }
      Value isThere =
          b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sge, number, end);
      choose(isThere, start, end);
      for (unsigned q = 0; q < cuts.size(); ++q) {
        choose(isThere, mine.lows[q], next.lows[q]);
        choose(isThere, mine.highs[q], next.highs[q]);
      }
      end = front.createOrFold<arith::AddIOp>(end, count);
    }
  return behind(
      b, mine.lows,
      ir::indicesOf(b, difference(b, number, start), lengthsOf(b, mine)));
}

} // namespace costate::autodiff
