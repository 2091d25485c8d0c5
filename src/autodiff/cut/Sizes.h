#pragma once
/// How much loops save: known only when the gradient is there, and computed
/// with before.

#include "autodiff/cut/Number.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// Numbers of loops, while a gradient is made: copies of a loop have its
/// number.
class LoopNumbers {
public:
  /// Gives one to each loop of `block` that has none.
  void give(mlir::Block &block);
  /// One for a loop that is not there yet.
  int64_t next() { return count++; }

  /// None if it has got none.
  static std::optional<int64_t> of(mlir::Operation *loop);
  static void set(mlir::Operation *loop, int64_t number);

private:
  int64_t count = 0;
};

/// Bytes of what a segment of the loop `number` begins with.
Number stateOf(int64_t number, Builder &b);
/// Bytes that an iteration saves, without loops in it that have numbers.
Number recordOf(int64_t number, Builder &b);

/// Puts numbers in the place of these bytes, and takes those of loops away.
/// `measured`: see cutByBudget.
void resolveSizes(ir::KernelOp gradient, bool measured);

bool isLoop(mlir::Operation *op);
/// The loops of `block` that are in no other one there.
llvm::SmallVector<mlir::Operation *> loopsOf(mlir::Block &block);
/// Of a loop that stands in front of `b`.
mlir::Value iterationsOf(mlir::Operation *loop, Builder &b);

} // namespace costate::autodiff
