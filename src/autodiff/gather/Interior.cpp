#include "autodiff/gather/Gatherer.h"

#include "autodiff/gather/Forms.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

void Gatherer::emitInterior(Builder &b) {
  std::vector<Contribution> all;
  for (const Together &together : byShift(additions, range))
    for (auto &[add, term] : copyInside(b, together))
      all.push_back({add, term, together.shifts, numberOf(add)});
  emitSums(b, std::move(all));
}

size_t Gatherer::numberOf(Operation *add) {
  return llvm::find_if(additions,
                       [&](const Addition &a) { return a.op == add; }) -
         additions.begin();
}

Terms Gatherer::copyInside(Builder &b, const Together &together) {
  ArrayRef<Affine> shifts = together.shifts;
  auto known = [&](OpBuilder &inner, Value value) {
    return mainValue(inner, value, shifts);
  };
  SliceCopy copy(together.slice, known);
  // Where they are used, from the element.
  for (auto [p, index] : llvm::enumerate(range.getIndices()))
    copy.values.map(index, emit(b, Affine::ofSymbol(element[p]) - shifts[p]));
  return copy.copy(b, *range.getBody(), together.additions);
}

Value Gatherer::mainValue(OpBuilder &inner, Value value,
                          ArrayRef<Affine> shifts) {
  const Steps *steps = knownSteps(value);
  if (!steps || !isSameInside(value, *steps))
    return {};
  unsigned p = cast<BlockArgument>(steps->index).getArgNumber();
  size_t main = steps->longest(extentOf(p));
  restrict(p, shifts[p], *steps, main);
  Affine form = steps->all[main].value;
  form.add(shifts[p], -form.coefficient(steps->index));
  Builder at(value.getLoc(), inner);
  return ofType(at, emit(at, form, steps->index, element[p]), value.getType());
}

const Steps *Gatherer::knownSteps(Value value) {
  const Steps *steps =
      value.getType().isInteger() ? analysis.of(value) : nullptr;
  bool holds = steps && steps->index &&
               llvm::all_of(steps->assumed, [&](const Affine &form) {
                 return isAssumed(form);
               });
  return holds ? steps : nullptr;
}

bool Gatherer::isAssumed(const Affine &form) const {
  if (form.isConstant())
    return form.constant >= 0;
  return llvm::any_of(assumed,
                      [&](const Affine &a) { return isSame(a, form); });
}

bool Gatherer::isSameInside(Value value, const Steps &steps) const {
  unsigned p = cast<BlockArgument>(steps.index).getArgNumber();
  size_t main = steps.longest(extentOf(p));
  bool isCondition = value.getType().isInteger(1);
  constexpr int64_t border = 16;
  Affine before = steps.all[main].from,
         after = extentOf(p) - steps.end(main, extentOf(p));
  return llvm::all_of(ArrayRef{before, after}, [&](const Affine &length) {
    return length.isConstant() ? length.constant <= border : !isCondition;
  });
}

void Gatherer::restrict(unsigned p, const Affine &shift, const Steps &steps,
                        size_t main) {
  inner[p].lows.push_back(steps.all[main].from + shift);
  inner[p].highs.push_back(steps.end(main, extentOf(p)) + shift);
}

} // namespace costate::autodiff
