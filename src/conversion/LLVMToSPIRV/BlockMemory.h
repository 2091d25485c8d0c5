#pragma once
/// Accesses of memory that the threads of a block share, at `bytes` in it.

#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

namespace costate::conversion {

/// A pointer to the word around `bytes`, or to one so many after it.
mlir::Value blockWord(SpirvBuilder &b, mlir::Value bytes, unsigned further);
/// Seen by others after a barrier.
mlir::Value loadFromBlock(SpirvBuilder &b, mlir::Value bytes, mlir::Type type);
void storeToBlock(SpirvBuilder &b, mlir::Value bytes, mlir::Value value,
                  mlir::Type type);

} // namespace costate::conversion
