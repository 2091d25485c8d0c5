#include "autodiff/gather/Numbers.h"

#include "autodiff/gather/Forms.h"
#include "autodiff/rules/Rules.h"
#include "ir/Division.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// The elements in [lows, highs).
struct Slab {
  Values lows, highs;

  Values lengths(Builder &b) const {
    Values all;
    for (auto [low, high] : llvm::zip(lows, highs))
      all.push_back(b.createOrFold<arith::SubIOp>(high, low));
    return all;
  }
  Value count(Builder &b) const {
    Values factors = lengths(b);
    Value product = factors.front();
    for (Value factor : ArrayRef(factors).drop_front())
      product = b.createOrFold<arith::MulIOp>(product, factor);
    return product;
  }
  /// The element with these indices in it.
  Values element(Builder &b, Values indices) const {
    for (auto [low, index] : llvm::zip(lows, indices))
      index = b.createOrFold<arith::AddIOp>(index, low);
    return indices;
  }
};

Slab between(ArrayRef<Cut> cuts, Value Cut::*low, Value Cut::*high) {
  Slab slab;
  for (const Cut &cut : cuts) {
    slab.lows.push_back(cut.*low);
    slab.highs.push_back(cut.*high);
  }
  return slab;
}

Slab interior(ArrayRef<Cut> cuts) {
  return between(cuts, &Cut::from, &Cut::to);
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
  return between(cuts, &Cut::low, &Cut::high).count(b);
}

Value countInside(Builder &b, ArrayRef<Cut> cuts) {
  return interior(cuts).count(b);
}

Values elementInside(Builder &front, Builder &b, ArrayRef<Cut> cuts,
                     Value number) {
  Slab slab = interior(cuts);
  Values lengths = slab.lengths(front);
  SmallVector<ir::Divisor> divisors;
  for (Value length : ArrayRef(lengths).drop_front())
    divisors.push_back(ir::Divisor::of(front, length));
  Value isNarrow = ir::isNarrow(front, countAll(front, cuts));
  return slab.element(b, ir::indicesOf(b, number, lengths, divisors, isNarrow));
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
      Value count = next.count(front);
      if (!end) {
        mine = next;
        end = count;
        start = indexConstant(front, 0);
        continue;
      }
      Value isThere = compare(b, arith::CmpIPredicate::sge, number, end);
      choose(isThere, start, end);
      for (unsigned q = 0; q < cuts.size(); ++q) {
        choose(isThere, mine.lows[q], next.lows[q]);
        choose(isThere, mine.highs[q], next.highs[q]);
      }
      end = front.createOrFold<arith::AddIOp>(end, count);
    }
  number = b.createOrFold<arith::SubIOp>(number, start);
  return mine.element(b, ir::indicesOf(b, number, mine.lengths(b)));
}

} // namespace costate::autodiff
