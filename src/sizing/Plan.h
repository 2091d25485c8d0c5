#pragma once
/// How a reverse sweep gets the forward values that it needs.

#include "sizing/Costs.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

#include <random>

namespace costate::sizing {

/// What the reverse sweep of a work item needs, and what there is without the
/// tape: values in scope, inverted counters.
struct SaveProblem {
  llvm::ArrayRef<mlir::Value> needed;
  /// How often a value is computed in one work item; 0 if the reverse sweep has
  /// it anyway.
  llvm::function_ref<double(mlir::Value)> timesOf;
  /// Whether the reverse sweep computes the sine of the same number as the
  /// cosine `op`, or the cosine of that of a sine.
  llvm::function_ref<bool(mlir::Operation *)> hasTwin = nullptr;
};

/// Values that go into the records of their blocks. All others that are needed
/// are recomputed from these and from what there is.
struct SavePlan {
  llvm::DenseSet<mlir::Value> saved;
};

/// Which plans are made.
struct Policy {
  enum class Choice {
    Cheapest,
    SaveAll, ///< all that is needed
    Random   ///< any plan
  };

  Costs costs{Target::Cpu};
  Choice choice = Choice::Cheapest;
  uint64_t seed = 0;       ///< of random plans
  bool keepsPlans = false; ///< as IR, for readers
};

class Planner {
public:
  explicit Planner(const Policy &policy)
      : policy(policy), random(policy.seed) {}

  SavePlan plan(const SaveProblem &problem);

private:
  bool chooses();

  Policy policy;
  std::mt19937_64 random;
};

/// Whether `plan` provides every needed value.
bool verifyPlan(const SaveProblem &problem, const SavePlan &plan);

/// How often a block of `op` runs for each time that `op` does; a guess unless
/// that is known.
int64_t timesOf(mlir::Operation *op);

} // namespace costate::sizing
