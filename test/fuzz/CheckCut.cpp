/// Gradients that save other things, or whose loops run again from checkpoints.

#include "fuzz/Checker.h"
#include "ir/Plan.h"

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

/// Bit for bit what a gradient that saves all has found, or, if it needs more
/// versions, up to rounding: it may take other values for those that a store
/// passes on, and adds up their adjoints in another order. On a tape that is
/// too short it may give up. `budget`: what it takes for its budget.
void Checker::expectSame(Property property, const Derived &other,
                         const Arrays &weights, size_t tapeBytes,
                         std::optional<size_t> budget, bool measured) {
  auto whole = std::exchange(versions, recordedFor(other, before));
  double tolerance = versions.size() == whole.size() ? 0 : 1e-12;
  Memory memory = extended(after, other.kernel, weights, versions);
  versions = std::move(whole);
  // A store of a common value has become several.
  auto report = other.launchable.run(memory, {.tapeBytes = tapeBytes,
                                              .budget = budget,
                                              .measured = measured,
                                              .races = false});
  bool gaveUp = !report && report.error().code == ErrorCode::OutOfMemory;
  if (gaveUp && tapeBytes != SIZE_MAX)
    return;
  if (!report)
    throw Mismatch{property, report.error().text};
  expectPrimal(property, "memory after the gradient", memory, after);
  std::string text =
      difference(kernel, extraOf(memory, other.kernel, before.arrays.size()),
                 *adjoints, tolerance);
  if (!text.empty())
    throw Mismatch{property, text};
}

void Checker::cutLoops(ArrayRef<bool> active, const Arrays &weights) {
  size_t need = peak;
  std::string reason;
  for (bool measured : {false, true}) {
    auto marked = [&](ir::KernelOp primal, ArrayRef<bool> active,
                      autodiff::Refusal &refusal) {
      markLoops(primal, random);
      return autodiff::differentiateReverse(primal, active, refusal,
                                            autodiff::Owners::Asked,
                                            {.measured = measured});
    };
    if (auto cut = differentiate(kernel, marked, active, reason))
      expectSame(Property::Cut, *cut, weights, SIZE_MAX, std::nullopt,
                 measured);
    auto byBudget = [&](ir::KernelOp primal, ArrayRef<bool> active,
                        autodiff::Refusal &refusal) {
      return autodiff::differentiateReverse(
          primal, active, refusal, autodiff::Owners::Asked,
          {.measured = measured, .byBudget = true});
    };
    auto cut = differentiate(kernel, byBudget, active, reason);
    if (!cut)
      throw Mismatch{Property::Cut, "refused only with a budget: " + reason};
    for (size_t budget : {need, need / 2 + 1, need / 4 + 1})
      expectSame(Property::Cut, *cut, weights, budget, std::nullopt, measured);
    // However little that is: all levels of checkpoints.
    for (int shift : {1, 3, 5})
      expectSame(
          Property::Cut, *cut, weights, SIZE_MAX,
          random.below(int(std::min<size_t>(need, 1u << 30) >> shift) + 1),
          measured);
  }
}

/// With all plans: one that saves all, those of the targets, random ones; the
/// last one on a tape that may be too short. That one is read as it prints.
void Checker::plans(ArrayRef<bool> active, const Arrays &weights) {
  using sizing::Costs, sizing::Policy, sizing::Target;
  const Policy policies[] = {
      {.choice = Policy::Choice::SaveAll},
      {.costs = Costs(random.below(2) ? Target::Gpu : Target::GpuFastMath)},
      {.choice = Policy::Choice::Random, .seed = seed},
      {.choice = Policy::Choice::Random, .seed = seed + 1, .keepsPlans = true}};
  size_t need = peak;
  for (const Policy &policy : policies) {
    bool byBudget = policy.keepsPlans;
    std::string reason;
    OwningOpRef<ModuleOp> planned;
    auto mode = [&](ir::KernelOp primal, ArrayRef<bool> flags,
                    autodiff::Refusal &refusal) {
      auto gradient = autodiff::differentiateReverse(
          primal, flags, refusal, autodiff::Owners::Asked,
          {.byBudget = byBudget}, policy);
      if (byBudget && succeeded(gradient)) {
        planned = moduleWith(gradient->kernel);
        tape::erasePlans(gradient->kernel);
      }
      return gradient;
    };
    auto other = differentiate(kernel, mode, active, reason);
    // A plan for readers keeps values that nobody takes, and with them loads.
    if (!other && policy.keepsPlans)
      continue;
    if (!other)
      throw Mismatch{Property::Plans, "refused with another plan: " + reason};
    if (byBudget)
      prints(kernelOf(*planned));
    expectSame(Property::Plans, *other, weights,
               byBudget ? need / 2 + 1 : SIZE_MAX);
  }
}

} // namespace costate::fuzz
