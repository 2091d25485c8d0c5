#pragma once
/// What goes for operations of any kind.

#include "mlir/IR/Builders.h"

namespace costate::ir {

/// Those that `isWanted`, below `root` or `root` itself, inner ones first: they
/// may change while they are gone through.
template <class Op, class F>
llvm::SmallVector<Op> all(mlir::Operation *root, F isWanted) {
  llvm::SmallVector<Op> found;
  root->walk([&](Op op) {
    if (isWanted(op))
      found.push_back(op);
  });
  return found;
}
template <class Op> llvm::SmallVector<Op> all(mlir::Operation *root) {
  return all<Op>(root, [](Op) { return true; });
}

/// Whether `check` succeeds for all of them; none is looked at after the first
/// one for which it does not.
template <class Op, class F>
llvm::LogicalResult forAll(mlir::Operation *root, F check) {
  return llvm::failure(
      root->walk([&](Op op) { return mlir::WalkResult(check(op)); })
          .wasInterrupted());
}

/// `op` with other operands and results, and with its regions: it stays as an
/// operation without them.
inline mlir::Operation *remade(mlir::Operation *op, mlir::ValueRange operands,
                               mlir::TypeRange types) {
  mlir::OperationState state(op->getLoc(), op->getName(), operands, types,
                             op->getAttrs());
  for (mlir::Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  return mlir::OpBuilder(op).create(state);
}

} // namespace costate::ir
