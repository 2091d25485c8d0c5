/// Gradients whose loops run again from checkpoints.

#include "fuzz/Checker.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace costate::fuzz {

/// Some of the loops of `kernel` get a few checkpoints.
static void markLoops(ir::KernelOp kernel, Random &random) {
  kernel.walk([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op) && !isa<ir::RangeOp>(op) &&
        random.below(2))
      op->setAttr(
          ir::checkpointsAttr,
          Builder(op->getContext()).getI64IntegerAttr(2 + random.below(4)));
  });
}

/// Bit for bit what a gradient that saves all has found; on a tape that is too
/// short it may give up.
void Checker::expectSame(const Derived &cut, const Arrays &weights,
                         size_t tapeBytes) {
  auto whole = std::exchange(versions, recordedFor(cut, before));
  Memory memory = extended(after, cut.kernel, weights, versions);
  versions = std::move(whole);
  // A store of a common value has become several.
  auto report =
      cut.launchable.run(memory, {.tapeBytes = tapeBytes, .races = false});
  bool gaveUp = !report && report.error().code == ErrorCode::OutOfMemory;
  if (gaveUp && tapeBytes != SIZE_MAX)
    return;
  if (!report)
    throw Mismatch{Property::Cut, report.error().text};
  expectPrimal(Property::Cut, "memory after the gradient", memory, after);
  std::string text =
      difference(kernel, extraOf(memory, cut.kernel, before.arrays.size()),
                 *adjoints, /*tolerance=*/0);
  if (!text.empty())
    throw Mismatch{Property::Cut, text};
}

void Checker::cutLoops(ArrayRef<bool> active, const Arrays &weights) {
  size_t need = peak;
  std::string reason;
  auto marked = [&](ir::KernelOp primal, ArrayRef<bool> active,
                    autodiff::Refusal &refusal) {
    markLoops(primal, random);
    return autodiff::differentiateReverse(primal, active, refusal);
  };
  if (auto cut = differentiate(kernel, marked, active, reason))
    expectSame(*cut, weights, SIZE_MAX);
  auto byBudget = [&](ir::KernelOp primal, ArrayRef<bool> active,
                      autodiff::Refusal &refusal) {
    return autodiff::differentiateReverse(
        primal, active, refusal, autodiff::Owners::Asked, {.byBudget = true});
  };
  auto cut = differentiate(kernel, byBudget, active, reason);
  if (!cut)
    throw Mismatch{Property::Cut, "refused only with a budget: " + reason};
  for (size_t budget : {need, need / 2 + 1, need / 4 + 1})
    expectSame(*cut, weights, budget);
}

} // namespace costate::fuzz
