#include "autodiff/gather/Gatherer.h"

#include "autodiff/gather/Forms.h"
#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

Value Gatherer::positionOf(Builder &b, const Reach &reach) {
  unsigned p = cast<BlockArgument>(reach.steps->index).getArgNumber();
  Affine own = Affine::ofSymbol(element[p]);
  return emit(b, reach.base + reach.rest + own * reach.slope);
}

std::vector<Gatherer::Sum> Gatherer::sumsOf(ArrayRef<Contribution> terms) {
  std::vector<Sum> sums;
  SmallVector<bool> done(additions.size());
  for (size_t k = 0; k < additions.size(); ++k) {
    if (done[k])
      continue;
    llvm::DenseSet<Operation *> mine;
    SmallVector<Location> places;
    for (size_t other = k; other < additions.size(); ++other)
      if (sameFrame(additions[k], additions[other])) {
        done[other] = true;
        ir::AtomicAddOp op = additions[other].op;
        mine.insert(op);
        places.push_back(op.getLoc());
      }
    Sum sum{additions[k], {}, FusedLoc::get(range.getContext(), places)};
    for (const Contribution &contribution : terms)
      if (mine.contains(contribution.add))
        sum.terms.push_back(contribution.term);
    if (!sum.terms.empty())
      sums.push_back(std::move(sum));
  }
  return sums;
}

void Gatherer::emitSums(Builder &b, std::vector<Contribution> terms) {
  llvm::sort(terms, comesFirst);
  std::vector<Sum> sums = sumsOf(terms);
  llvm::DenseSet<Value> arrays;
  for (Sum &sum : sums)
    if (arrays.insert(sum.addition.array).second && !sum.isConditional())
      loadOld(b, sum);
  for (Sum &sum : sums)
    emitSum(b, sum);
}

void Gatherer::loadOld(Builder &b, Sum &sum) {
  const Addition &addition = sum.addition;
  b.setLoc(sum.places);
  for (Value index : addition.indices)
    sum.position.push_back(isUniform(index, range) ? emit(b, Affine::of(index))
                                                   : index);
  for (const Reach &reach : addition.reaches)
    sum.position[reach.dim] = positionOf(b, reach);
  sum.old = ir::LoadOp::create(b, sum.terms.front().value.getType(),
                               addition.array, sum.position);
}

bool Gatherer::comesFirst(const Contribution &a, const Contribution &b) {
  for (auto [x, y] : llvm::zip(a.shifts, b.shifts))
    if (int64_t distance = estimate(x - y))
      return distance > 0;
  return a.number < b.number;
}

void Gatherer::emitSum(Builder &b, Sum &sum) {
  OpBuilder::InsertionGuard guard(b);
  b.setLoc(sum.places);
  if (sum.isConditional()) {
    Value any = sum.terms.front().condition;
    for (const Term &term : ArrayRef(sum.terms).drop_front())
      any = arith::OrIOp::create(b, any, term.condition);
    auto branch = scf::IfOp::create(b, any, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  if (!sum.old)
    loadOld(b, sum);
  Value value = sum.old;
  for (const Term &term : sum.terms)
    value = arith::AddFOp::create(b, value, term.value);
  ir::StoreOp::create(b, value, sum.addition.array, sum.position);
}

} // namespace costate::autodiff
