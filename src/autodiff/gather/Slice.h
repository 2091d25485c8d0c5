#pragma once
/// What the additions of a work item are computed from, and copies of it for
/// other work items.

#include "autodiff/replay/Accesses.h"
#include "sizing/Costs.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace costate::autodiff {

/// The same for all devices: they decide the order of additions.
sizing::Costs gatherCosts();

/// The operations that give what some additions of a range add, and decide
/// whether they do.
struct Slice {
  llvm::DenseSet<mlir::Operation *> operations;
  llvm::DenseSet<mlir::Value> values;
  bool isPure = true; ///< it can be computed more than once, anywhere

  void add(ir::AtomicAddOp addition, ir::RangeOp range);
  llvm::SmallVector<ir::LoadOp> loads() const;
  /// How long it takes; 1 for an addition of floats.
  int64_t weight() const;

private:
  void need(mlir::Value value, ir::RangeOp range);
};

/// What an addition adds, and whether it does: null if it certainly does.
struct Term {
  mlir::Value value, condition;
};
using Terms = llvm::MapVector<mlir::Operation *, Term>;

/// Copies a slice.
class SliceCopy {
public:
  /// Gives a value of the copy for one of the slice; null: it is copied.
  using Known = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)>;

  SliceCopy(const Slice &slice, Known known) : slice(slice), known(known) {}

  mlir::IRMapping values;
  /// The terms of those of the additions that `isWanted`.
  Terms copy(mlir::OpBuilder &b, mlir::Block &body,
             llvm::ArrayRef<ir::AtomicAddOp> wanted);

private:
  void copy(mlir::OpBuilder &b, mlir::Block &body, Terms &terms);
  void copyBranch(mlir::OpBuilder &b, mlir::scf::IfOp branch, Terms &terms);
  void copySides(mlir::OpBuilder &b, mlir::scf::IfOp branch,
                 mlir::Value condition, Terms &terms);
  llvm::SmallVector<mlir::Value> neededOf(mlir::scf::IfOp branch);
  llvm::SmallVector<mlir::Value> yielded(llvm::ArrayRef<mlir::Value> results,
                                         mlir::Block &side);
  bool isKnown(mlir::OpBuilder &b, mlir::Operation *op);

  const Slice &slice;
  Known known;
  llvm::ArrayRef<ir::AtomicAddOp> wanted;
};

/// -0: adds nothing to any number, not to another -0 either.
mlir::Value nothing(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type);

/// if `condition` { `terms` } else { nothing }, with the terms made by `fill`;
/// null: that certainly holds.
Terms guarded(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
              llvm::function_ref<Terms(mlir::OpBuilder &)> fill);

} // namespace costate::autodiff
