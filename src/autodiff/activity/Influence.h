#pragma once
/// Which values a derivative comes from.

#include "ir/Kernel.h"

#include "llvm/ADT/DenseSet.h"

namespace costate::autodiff {

/// The float values of a primal on which elements of active arrays depend
/// smoothly. The adjoint of everything else is 0: what only conditions, indices
/// and integers use, and what a loop computes for nothing but that.
class Influence {
public:
  /// `isActive(array)`: the array has an adjoint.
  Influence(ir::KernelOp kernel,
            llvm::function_ref<bool(mlir::Value array)> isActive);

  bool has(mlir::Value value) const { return influential.contains(value); }
  /// `copy` is another `value`.
  void copied(mlir::Value value, mlir::Value copy) {
    if (has(value))
      influential.insert(copy);
  }

private:
  void mark(mlir::Value value);
  void follow(mlir::Value value);

  llvm::DenseSet<mlir::Value> influential;
  llvm::SmallVector<mlir::Value> pending;
};

} // namespace costate::autodiff
