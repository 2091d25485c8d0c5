#pragma once
/// Forward values as the reverse sweep sees them.

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

namespace costate::autodiff {

/// The reverse of one execution of a forward block. It hands out the values of
/// that block and of the enclosing ones; how it gets its own (from the record
/// that the forward block pushes, or recomputed from it) is decided by
/// `finish`, when all that is needed is known.
class Scope {
public:
  /// The outermost block of an iteration or of the serial code: its values are
  /// still in scope.
  explicit Scope(mlir::Block &forward) : forward(forward) {}

  /// A nested block, whose reverse starts where `builder` stands.
  Scope(mlir::Block &forward, Scope &parent, mlir::OpBuilder &builder);

  /// The forward value `value`, visible in the reverse of this block.
  mlir::Value use(mlir::Value value);

  /// Says that `value` is had as `known`, without a tape.
  void provide(mlir::Value value, mlir::Value known) {
    provided[value] = known;
  }

  /// Plans and emits the pop, the recomputations, and the push at the end of
  /// the forward block. To be called once, after all uses.
  void finish();

private:
  bool isOutermost() const { return !head; }
  bool owns(mlir::Value value) const {
    return value.getParentBlock() == &forward;
  }
  mlir::Value placeholderFor(mlir::Value value);
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Value value);
  void emitRecord(mlir::OpBuilder &builder,
                  llvm::ArrayRef<mlir::Value> saved);

  mlir::Block &forward;
  Scope *parent = nullptr;
  mlir::Operation *head = nullptr; ///< pop and recomputations stand before it
  llvm::DenseMap<mlir::Value, mlir::Value> provided;
  llvm::MapVector<mlir::Value, mlir::Operation *> placeholders;
};

} // namespace costate::autodiff
