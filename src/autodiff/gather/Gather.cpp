#include "autodiff/gather/Gather.h"

#include "autodiff/Prune.h"
#include "autodiff/gather/Forms.h"
#include "autodiff/gather/Gatherer.h"
#include "autodiff/rules/Rules.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace costate::autodiff {

using Builder = ImplicitLocOpBuilder;

namespace {

/// What is not decided yet among `forms`; nothing if one cannot hold, or the
/// host cannot tell.
std::optional<SmallVector<Affine>> open(ArrayRef<Affine> forms) {
  SmallVector<Affine> rest;
  for (const Affine &form : forms) {
    if (form.isConstant() && form.constant < 0)
      return std::nullopt;
    if (form.isConstant() ||
        llvm::any_of(rest, [&](const Affine &a) { return isSame(a, form); }))
      continue;
    if (!isKnownToHost(form))
      return std::nullopt;
    rest.push_back(form);
  }
  return rest;
}

/// if all of `forms` hold { range } else { a copy of it }
void divide(ir::RangeOp range, ArrayRef<Affine> forms) {
  Builder b(range.getLoc(), range);
  Value holds;
  for (const Affine &form : forms)
    holds = both(b, holds,
                 compare(b, arith::CmpIPredicate::sge, emit(b, form),
                         indexConstant(b, 0)));
  auto branch = scf::IfOp::create(b, range.getResultTypes(), holds,
                                  /*withElseRegion=*/true);
  range->replaceAllUsesWith(branch);
  Operation *other = range->clone();
  for (auto [block, op] : {std::pair(branch.thenBlock(), range.getOperation()),
                           std::pair(branch.elseBlock(), other)}) {
    if (op->getBlock())
      op->moveBefore(block, block->begin());
    else
      block->push_front(op);
    if (op->getNumResults()) {
      b.setInsertionPointToEnd(block);
      scf::YieldOp::create(b, op->getResults());
    }
  }
}

bool addsToAdjoints(ir::RangeOp range) {
  return range
      .walk([](ir::AtomicAddOp add) {
        return ir::isOfAdjoint(add.getArray()) ? WalkResult::interrupt()
                                               : WalkResult::advance();
      })
      .wasInterrupted();
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
  auto undecided = open(gatherer.assumptions());
  if (!undecided || (!undecided->empty() && pushes(range)))
    return false;
  if (!undecided->empty())
    divide(range, *undecided);
  gatherer.emitRange();
  for (const Addition &addition : additions)
    addition.op->erase();
  return true;
}

} // namespace

static SmallVector<ir::RangeOp> rangesOf(ir::KernelOp kernel) {
  SmallVector<ir::RangeOp> ranges;
  kernel.walk([&](ir::RangeOp range) { ranges.push_back(range); });
  return ranges;
}

void gatherAdditions(ir::KernelOp kernel, bool numbered) {
  bool changed = false;
  for (ir::RangeOp range : rangesOf(kernel))
    changed |= gather(range, numbered);
  if (!changed)
    return;
  prune(kernel);
  for (ir::RangeOp range : rangesOf(kernel))
    if (!range->hasAttr(ir::gatherAttr))
      narrow(range);
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
}

} // namespace costate::autodiff
