#include "autodiff/gather/Gather.h"

#include "autodiff/Prune.h"
#include "autodiff/gather/Assumptions.h"
#include "autodiff/gather/Gatherer.h"
#include "ir/Operations.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace costate::autodiff {

namespace {

bool addsToAdjoints(ir::RangeOp range) {
  return ir::contains(range, [](Operation *op) {
    auto add = dyn_cast<ir::AtomicAddOp>(op);
    return add && ir::isOfAdjoint(add.getArray());
  });
}

bool gather(ir::RangeOp range, bool numbered) {
  if (!addsToAdjoints(range))
    return false;
  flattenChoices(range);
  StepAnalysis analysis(range);
  std::vector<Addition> additions = additionsOf(range, analysis);
  if (additions.empty())
    return false;
  Gatherer gatherer(range, analysis, additions, numbered);
  if (!gatherer.plan())
    return false;
  auto open = undecided(gatherer.assumptions());
  if (!open || (!open->empty() && pushes(range)))
    return false;
  if (!open->empty())
    divide(range, *open);
  gatherer.emitRange();
  for (const Addition &addition : additions)
    addition.op->erase();
  return true;
}

} // namespace

void gatherAdditions(ir::KernelOp kernel, bool numbered) {
  bool changed = false;
  for (ir::RangeOp range : ir::all<ir::RangeOp>(kernel))
    changed |= gather(range, numbered);
  if (!changed)
    return;
  prune(kernel);
  for (ir::RangeOp range : ir::all<ir::RangeOp>(kernel))
    if (!range->hasAttr(ir::gatherAttr))
      narrow(range);
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
}

} // namespace costate::autodiff
