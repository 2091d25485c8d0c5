#pragma once
/// Loops and branches of the reverse sweep while they are built.

#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace costate::autodiff {

/// A loop `for j = 0 to count` under construction, that carries adjoints. Its
/// block exists first; what it carries becomes known as it is filled.
class ReverseLoop {
public:
  ReverseLoop(mlir::Location loc, mlir::Type counter);

  /// Adds a carried adjoint; the value at the start of an iteration.
  mlir::Value carry(mlir::Type type) {
    return block->addArgument(type, b.getLoc());
  }

  /// What the adjoint of `value`, from outside of the loop, has come to at the
  /// start of an iteration: carried as well.
  mlir::Value sumBefore(mlir::Value value) {
    mlir::Value &sum = sums[value];
    return sum ? sum : sum = carry(value.getType());
  }
  /// By value, in the order in which they were asked for.
  const llvm::MapVector<mlir::Value, mlir::Value> &sumsBefore() const {
    return sums;
  }

  /// Ends the block and builds the loop; `next` and `inits` are in the order of
  /// `carry`.
  mlir::scf::ForOp close(Builder &outer, mlir::Value count,
                         llvm::ArrayRef<mlir::Value> inits,
                         llvm::ArrayRef<mlir::Value> next);

  /// The number of the iteration that is being reversed, of `count`: counters
  /// run down, they are inverted and not saved.
  mlir::Value iteration(Builder &at, mlir::Value count);

  /// A constant of the type of the counter.
  mlir::Value constant(Builder &at, int64_t value);

  mlir::Block *block;
  mlir::Value counter;
  Builder b;

private:
  llvm::MapVector<mlir::Value, mlir::Value> sums;
};

/// An `if` of two finished blocks; its results.
Values createIf(Builder &b, mlir::Value condition, mlir::TypeRange types,
                mlir::Block *yes, mlir::Block *no);

} // namespace costate::autodiff
