#pragma once
/// What loads and stores have in common with atomics.

#include "conversion/LLVMToMetal/Emission.h"

namespace costate::conversion {

/// Bits that `type` takes in memory.
unsigned storedBits(mlir::Type type);
/// An address as functions of Prelude.metal take it.
std::string placeOf(Emission &e, mlir::Value address);

bool isAtomicAccess(mlir::Type type, mlir::LLVM::AtomicOrdering order);
mlir::LogicalResult emitAtomicLoad(Emission &e, mlir::LLVM::LoadOp op);
mlir::LogicalResult emitAtomicStore(Emission &e, mlir::LLVM::StoreOp op);

} // namespace costate::conversion
