#pragma once
/// One function of the LLVM dialect, with structured control flow, while it
/// becomes one of SPIR-V: what the groups of operations share.

#include "conversion/LLVMToSPIRV/Imported.h"
#include "conversion/LLVMToSPIRV/PrivateMemory.h"
#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

namespace costate::conversion {

struct Translation {
  Translation(SpirvModule &module, const SharedLayout &shared,
              mlir::LLVM::LLVMFuncOp from);

  mlir::Value get(mlir::Value value) const { return values.lookup(value); }
  mlir::Value operand(mlir::Operation *op, unsigned k) const {
    return get(op->getOperand(k));
  }
  mlir::LogicalResult set(mlir::Operation *op, mlir::Value value);
  void set(mlir::ValueRange old, mlir::ValueRange made);
  /// Says that it has no counterpart.
  mlir::LogicalResult none(mlir::Operation *op);

  const SharedLayout &shared;
  mlir::LLVM::LLVMFuncOp from;
  SpirvBuilder b;
  mlir::DataLayout layout;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  /// Results of operations with several, which have no value.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> parts;
  PrivateMemory memory;
};

/// Appends the function to `module`. Emits an error at what has no counterpart.
mlir::LogicalResult translateFunction(SpirvModule &module,
                                      const SharedLayout &shared,
                                      mlir::LLVM::LLVMFuncOp from);

} // namespace costate::conversion
