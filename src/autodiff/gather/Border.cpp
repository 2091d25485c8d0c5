#include "autodiff/gather/Gatherer.h"

#include "autodiff/gather/Forms.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

void Gatherer::emitBorder(Builder &b, bool ofRow) {
  std::vector<Contribution> all;
  for (const Together &together : together())
    forEachCandidate(together, ofRow, [&](ArrayRef<const Candidate *> chosen) {
      SmallVector<Affine> shifts;
      for (const Candidate *candidate : chosen)
        shifts.push_back(candidate->distance());
      for (auto &[add, term] : copyIfThere(b, together, chosen, ofRow))
        all.push_back({add, term, shifts, numberOf(add)});
    });
  emitSums(b, std::move(all));
}

std::vector<Together> Gatherer::together() {
  std::vector<Addition> plain, rest;
  for (const Addition &addition : additions)
    (addition.isPlain() ? plain : rest).push_back(addition);
  std::vector<Together> all = byShift(plain, range);
  for (const Addition &addition : rest)
    llvm::append_range(all, byShift(addition, range));
  return all;
}

void Gatherer::forEachCandidate(
    const Together &together, bool ofRow,
    llvm::function_ref<void(ArrayRef<const Candidate *>)> f) {
  auto &lists = candidatesOf[together.additions.front()];
  SmallVector<SmallVector<const Candidate *>> choices(lists.size());
  for (auto [p, list] : llvm::enumerate(lists))
    for (const Candidate &candidate : list)
      if (!ofRow || candidate.isMain || p + 1 == lists.size())
        choices[p].push_back(&candidate);
  SmallVector<size_t> at(choices.size(), 0);
  while (true) {
    SmallVector<const Candidate *> chosen;
    for (auto [k, list] : llvm::zip(at, choices))
      chosen.push_back(list[k]);
    f(chosen);
    size_t p = 0;
    while (p < at.size() && ++at[p] == choices[p].size())
      at[p++] = 0;
    if (p == at.size())
      return;
  }
}

Terms Gatherer::copyIfThere(Builder &b, const Together &together,
                            ArrayRef<const Candidate *> chosen, bool ofRow) {
  Box box = commonConditions(together);
  unsigned last = chosen.size() - 1;
  Values items;
  Value outside, inRow;
  for (auto [p, candidate] : llvm::enumerate(chosen)) {
    items.push_back(itemOf(b, p, *candidate));
    if (!ofRow || p == last)
      (p == last ? inRow : outside) =
          both(b, p == last ? inRow : outside,
               isThere(b, p, *candidate, box.sides[p], items.back()));
  }
  if (branchless)
    return copyAnyway(b, together, box, items, ofRow, both(b, outside, inRow));
  auto copy = [&](OpBuilder &inner) {
    return copyItem(inner, together, box, items, ofRow);
  };
  // What a row has in common is asked first.
  if (!outside)
    return guarded(b, range.getLoc(), inRow, copy);
  return guarded(b, range.getLoc(), outside, [&](OpBuilder &inner) {
    return guarded(inner, range.getLoc(), inRow, copy);
  });
}

Box Gatherer::commonConditions(const Together &together) {
  Box box;
  box.sides.resize(indices.size());
  if (branchless && pushes(range)) // which cannot be `divide`d
    return box;
  Operation *op = together.additions.front();
  for (; op->getParentOp() != range; op = op->getParentOp()) {
    auto branch = cast<scf::IfOp>(op->getParentOp());
    bool areAllThere = llvm::all_of(together.additions, [&](auto add) {
      return op->getParentRegion()->isAncestor(add->getParentRegion());
    });
    if (areAllThere)
      box.add(analysis, range, branch.getCondition(),
              op->getBlock() == branch.thenBlock(),
              [&](Value condition, const Steps &steps) {
                return isSameInside(condition, steps) &&
                       (!branchless ||
                        llvm::all_of(steps.all, [](const Step &step) {
                          return isKnownToHost(step.from);
                        }));
              });
  }
  return box;
}

Terms Gatherer::copyItem(OpBuilder &inner, const Together &together,
                         const Box &box, ValueRange items, bool ofRow) {
  auto known = [&](OpBuilder &nested, Value value) -> Value {
    if (ofRow && isOuter(value))
      if (Value main = mainValue(nested, value, together.shifts))
        return main;
    if (auto found = box.answers.find(value); found != box.answers.end())
      return arith::ConstantOp::create(nested, value.getLoc(),
                                       nested.getBoolAttr(found->second));
    return stepwise(nested, value, items);
  };
  SliceCopy copy(together.slice, known);
  copy.values.map(range.getIndices(), items);
  Builder at(range.getLoc(), inner);
  if (!branchless)
    mapPositions(at, together, copy.values);
  return copy.copy(inner, *range.getBody(), together.additions);
}

Terms Gatherer::copyAnyway(Builder &b, const Together &together, const Box &box,
                           ValueRange items, bool ofRow, Value there) {
  Values others;
  for (auto [p, item] : llvm::enumerate(items))
    others.push_back(ofRow && p + 1 < items.size()
                         ? item
                         : nearest(b, p, box.sides[p], item));
  Terms terms = copyItem(b, together, box, others, ofRow);
  for (auto &[add, term] : terms) {
    Value none = nothing(b, range.getLoc(), term.value.getType());
    term = {arith::SelectOp::create(b, there, term.value, none),
            both(b, there, term.condition)};
  }
  return terms;
}

Value Gatherer::nearest(Builder &b, unsigned p, Bounds sides, Value item) {
  sides.lows.push_back(Affine());
  sides.highs.push_back(extentOf(p));
  for (Affine &high : sides.highs)
    --high.constant;
  item = b.createOrFold<arith::MinSIOp>(item, least(b, sides.highs));
  return b.createOrFold<arith::MaxSIOp>(item, least(b, sides.lows, -1));
}

bool Gatherer::isOuter(Value value) {
  const Steps *steps = knownSteps(value);
  return steps && steps->index != indices.back();
}

void Gatherer::mapPositions(Builder &b, const Together &together,
                            IRMapping &values) {
  for (const Addition &addition : additions)
    if (llvm::is_contained(together.additions, addition.op))
      for (const Reach &reach : addition.reaches)
        if (reach.steps->all.size() > 1)
          values.map(addition.indices[reach.dim], positionOf(b, reach));
}

Value Gatherer::stepwise(OpBuilder &inner, Value value, ValueRange items) {
  const Steps *steps = knownSteps(value);
  if (!steps || value.getType().isInteger(1))
    return {};
  Value item = items[cast<BlockArgument>(steps->index).getArgNumber()];
  Builder b(value.getLoc(), inner);
  Value result;
  for (const Step &step : steps->all) {
    Value next = emit(b, step.value, steps->index, item);
    if (!result) {
      result = next;
      continue;
    }
    Value isThere =
        compare(b, arith::CmpIPredicate::sge, item, emit(b, step.from));
    result = b.createOrFold<arith::SelectOp>(isThere, next, result);
  }
  return ofType(b, result, value.getType());
}

Value Gatherer::itemOf(Builder &b, unsigned p, const Candidate &candidate) {
  if (!candidate.shift)
    return emit(b, candidate.item);
  return emit(b, Affine::ofSymbol(element[p]) - *candidate.shift);
}

Value Gatherer::isThere(Builder &b, unsigned p, const Candidate &candidate,
                        const Bounds &sides, Value item) {
  using P = arith::CmpIPredicate;
  Bounds bounds = sides;
  bounds.highs.push_back(candidate.to);
  bounds.highs.push_back(extentOf(p));
  if (candidate.shift)
    bounds.lows.push_back(candidate.from);
  if (!candidate.from.isConstant()) // negative if there are no work items
    bounds.lows.push_back(Affine());
  if (candidate.shift && !branchless)
    dropImplied(p, *candidate.shift, bounds);
  Value there;
  if (!bounds.highs.empty())
    there = compare(b, P::slt, item, least(b, bounds.highs));
  if (!bounds.lows.empty())
    there = both(b, there, compare(b, P::sge, item, least(b, bounds.lows, -1)));
  if (!candidate.shift)
    there = both(b, there,
                 compare(b, P::eq, element[p], emit(b, candidate.target)));
  return there;
}

void Gatherer::dropImplied(unsigned p, const Affine &shift, Bounds &bounds) {
  auto isWithin = [&](ArrayRef<Affine> elements, const Affine &bound,
                      int sign) {
    return llvm::all_of(elements, [&](const Affine &element) {
      auto distance = constantDifference(bound + shift, element);
      return distance && sign * *distance >= 0;
    });
  };
  llvm::erase_if(bounds.lows, [&](const Affine &low) {
    return isWithin(hull[p].lows, low, -1);
  });
  llvm::erase_if(bounds.highs, [&](const Affine &high) {
    return isWithin(hull[p].highs, high, 1);
  });
}

} // namespace costate::autodiff
