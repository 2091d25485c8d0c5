#pragma once
/// Which values have a derivative, and which ones a derivative comes from.

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "llvm/ADT/SetVector.h"

namespace costate::autodiff {

/// Some of the float values of a kernel, and of its private arrays.
class FloatValues {
public:
  bool contains(mlir::Value value) const { return values.contains(value); }
  /// `copy` is another `value`.
  void copied(mlir::Value value, mlir::Value copy) {
    if (contains(value))
      values.insert(copy);
  }

protected:
  void mark(mlir::Value value);

  llvm::SetVector<mlir::Value> values; ///< grows while it is gone through
};

/// Those that depend smoothly on the elements of active arrays. Everything else
/// costs a derivative nothing. Linear in the number of uses.
class Activity : public FloatValues {
public:
  /// `isActive(array)`: the array has an adjoint or tangent.
  Activity(ir::KernelOp kernel,
           llvm::function_ref<bool(mlir::Value array)> isActive);

  bool isVaried(mlir::Value value) const { return contains(value); }

private:
  void follow(mlir::OpOperand &use);

  llvm::DenseMap<int64_t, tape::Record> records;
};

/// Those of a primal on which elements of active arrays depend smoothly. The
/// adjoint of everything else is 0: what only conditions, indices and integers
/// use, and what a loop computes for nothing but that.
class Influence : public FloatValues {
public:
  /// `isActive(array)`: the array has an adjoint.
  Influence(ir::KernelOp kernel,
            llvm::function_ref<bool(mlir::Value array)> isActive);

private:
  void follow(mlir::Value value);
};

} // namespace costate::autodiff
