#pragma once
/// Forward values as the reverse sweep sees them.

#include "sizing/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

namespace costate::autodiff {

/// What all scopes of a kernel share.
struct Records {
  sizing::Planner planner;
  int64_t count = 0; ///< made so far
};

/// The reverse of one execution of a forward block. It hands out the values of
/// that block and of the enclosing ones; how it gets its own (from the record
/// that the forward block pushes, or recomputed from it) is decided by
/// `plan`, when all that is needed is known.
class Scope {
public:
  /// The outermost block of a work item or of the serial code: its values are
  /// still in scope.
  Scope(mlir::Block &forward, Records &records)
      : forward(forward), records(records) {}

  /// A nested block, whose reverse starts where `builder` stands.
  Scope(mlir::Block &forward, Scope &parent, mlir::OpBuilder &builder);

  /// A block of the reverse sweep into which what `parent` reverses has been
  /// copied, to be run again: values of the copy are in scope.
  Scope(mlir::Block &copy, Scope &parent)
      : forward(copy), records(parent.records), parent(&parent) {}

  /// The forward value `value`, visible in the reverse of this block.
  mlir::Value use(mlir::Value value);

  /// Whether `value` itself is visible there.
  bool sees(mlir::Value value) const {
    const Scope *owner = ownerOf(value);
    return !owner || owner->isOutermost();
  }

  /// Says that `value` is available as `known`, without a tape.
  void provide(mlir::Value value, mlir::Value known) {
    provided[value] = known;
  }

  /// Says that `to` takes the place of the value `from` of this block.
  void rename(mlir::Value from, mlir::Value to);

  /// Whether values of this block reach the reverse sweep without a tape: of
  /// the outermost block, and of branches that no loop encloses.
  bool isDirect() const { return direct; }

  /// Decides which values of the block its reverse has to be given; call it
  /// once, after all uses, and then one of the two ways to give them.
  llvm::ArrayRef<mlir::Value> plan();
  /// By one record: a pop here, a push at the end of the forward block.
  void finishWithRecord();
  /// By `known`, one value for each that plan() has returned.
  void finishWith(mlir::ValueRange known);

private:
  bool isOutermost() const { return !head; }
  bool owns(mlir::Value value) const {
    return value.getParentBlock() == &forward;
  }
  /// Null of serial values and arguments of the kernel.
  const Scope *ownerOf(mlir::Value value) const {
    const Scope *owner = this;
    while (owner && !owner->owns(value))
      owner = owner->parent;
    return owner;
  }
  mlir::Value placeholderFor(mlir::Value value);
  double timesOf(mlir::Value value) const;
  bool hasTwin(mlir::Operation *op) const;
  void tellPlan() const;
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Value value);

  mlir::Block &forward;
  Records &records;
  Scope *parent = nullptr;
  bool direct = true;
  mlir::Operation *head = nullptr; ///< pop and recomputations stand before it
  sizing::SavePlan made;
  llvm::DenseMap<mlir::Value, mlir::Value> provided;
  llvm::MapVector<mlir::Value, mlir::Operation *> placeholders;
};

} // namespace costate::autodiff
