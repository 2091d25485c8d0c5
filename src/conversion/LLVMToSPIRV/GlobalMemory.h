#pragma once
/// Accesses of the memory of the device, at an `address` of 64 bits.

#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

namespace costate::conversion {

/// What memory has of a type: numbers of 8 and 16 bits as such.
mlir::Type storedAs(mlir::Type type, mlir::OpBuilder &b);

mlir::Value globalPointer(SpirvBuilder &b, mlir::Value address,
                          mlir::Type type);
mlir::FailureOr<mlir::Value> loadGlobal(SpirvBuilder &b, mlir::Value address,
                                        mlir::LLVM::LoadOp op);
mlir::LogicalResult storeGlobal(SpirvBuilder &b, mlir::Value address,
                                mlir::Value value, mlir::LLVM::StoreOp op);
/// A number of a table that lies anywhere, from the words that it lies in.
mlir::Value loadUnaligned(SpirvBuilder &b, mlir::Value address,
                          mlir::Type type);

} // namespace costate::conversion
