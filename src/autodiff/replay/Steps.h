#pragma once
/// Indices that are affine in one index of a range, step by step: remainders,
/// clamped ones, and those that a condition chooses.

#include "autodiff/replay/Affine.h"
#include "ir/Kernel.h"

#include <memory>

namespace costate::autodiff {

/// From where on an index of a range gives which value: affine forms of it and
/// of what all work items have in common. A condition is 0, 1, or a condition
/// that all work items have in common.
struct Step {
  Affine from, value;

  /// Of a condition; null if only a run tells.
  std::optional<bool> answer() const;
};

/// The steps of a value, from 0 up to the extent of `index`.
struct Steps {
  mlir::Value index; ///< null: all work items have one value, in one step
  llvm::SmallVector<Step, 3> all;
  /// They hold if none of these is negative.
  llvm::SmallVector<Affine, 2> assumed;

  /// The end of a step; the extent is that of the last one.
  const Affine &end(size_t step, const Affine &extent) const {
    return step + 1 < all.size() ? all[step + 1].from : extent;
  }
  /// A constant that is too large to be a border is about the extent.
  Affine likely(const Affine &extent) const;
  /// The longest step, as far as extents can be guessed.
  size_t longest(const Affine &extent) const;
};

/// The steps of the values of a range.
class StepAnalysis {
public:
  explicit StepAnalysis(ir::RangeOp range);
  ~StepAnalysis();

  /// Null if `value` is not of this kind.
  const Steps *of(mlir::Value value);
  Affine extentOf(mlir::Value index);

private:
  class Builder;
  ir::RangeOp range;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Steps>> known;
};

/// Whether a constant is no number of neighbours, but an extent.
inline bool isExtent(int64_t constant) { return constant > 16; }

/// How large a form is, if what it is made of is large.
int64_t estimate(const Affine &form);

} // namespace costate::autodiff
