#pragma once
/// Forward mode: adds the tangent of every value to a copy of a kernel.

#include "autodiff/activity/Activity.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::autodiff {

/// `kernel` starts as a copy of the primal with tangent arrays appended and
/// becomes primal and tangent in one. A store overwrites the tangent of its
/// element, an update adds to it.
class Forward {
public:
  Forward(ir::KernelOp kernel,
          llvm::DenseMap<mlir::Value, mlir::Value> tangentArrays);
  mlir::LogicalResult run();

private:
  using Builder = mlir::ImplicitLocOpBuilder;

  mlir::LogicalResult block(mlir::Block &block);
  mlir::LogicalResult op(mlir::Operation *op);
  mlir::LogicalResult scalar(mlir::Operation *op);
  void load(ir::LoadOp load);
  void store(ir::StoreOp store);
  void update(ir::AtomicAddOp update);
  mlir::LogicalResult region(mlir::Operation *op);

  /// The tangent of `value`: 0 if it has none.
  mlir::Value tangentOf(Builder &b, mlir::Value value);
  /// `values` and the tangents of those that vary.
  llvm::SmallVector<mlir::Value> withTangents(Builder &b,
                                              mlir::ValueRange values,
                                              mlir::ValueRange varying);
  void addArguments(mlir::Block &block, unsigned first);
  void extendTerminator(mlir::Block &block, mlir::ValueRange varying,
                        unsigned first);

  ir::KernelOp kernel;
  llvm::DenseMap<mlir::Value, mlir::Value> tangentArrays;
  Activity activity;
  llvm::DenseMap<mlir::Value, mlir::Value> tangents;
};

} // namespace costate::autodiff
