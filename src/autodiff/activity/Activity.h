#pragma once
/// Which values have a derivative at all.

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "llvm/ADT/DenseSet.h"

namespace costate::autodiff {

/// The float values of a kernel that depend smoothly on the elements of active
/// arrays. Everything else costs a derivative nothing. Linear in the number of
/// uses.
class Activity {
public:
  /// `isActive(array)`: the array has an adjoint or tangent.
  Activity(ir::KernelOp kernel,
           llvm::function_ref<bool(mlir::Value array)> isActive);

  bool isVaried(mlir::Value value) const { return varied.contains(value); }
  /// `copy` is another `value`.
  void copied(mlir::Value value, mlir::Value copy) {
    if (isVaried(value))
      varied.insert(copy);
  }

private:
  void mark(mlir::Value value);
  void follow(mlir::OpOperand &use);
  void followTerminator(mlir::OpOperand &use);
  void followLoop(mlir::OpOperand &use);
  void followRecord(tape::PushOp push, unsigned index);

  llvm::DenseMap<int64_t, tape::Record> records;
  llvm::DenseSet<mlir::Value> varied;
  llvm::SmallVector<mlir::Value> pending;
};

} // namespace costate::autodiff
