#pragma once
/// Accesses that other threads see as a whole.

#include "conversion/LLVMToSPIRV/Translation.h"

namespace costate::conversion {

mlir::spirv::MemorySemantics semantics(const VulkanFeatures &features,
                                       mlir::LLVM::AtomicOrdering order);

/// Whether it is one. Narrow elements are read and written as a whole anyway.
bool isAtomic(mlir::Type type, mlir::LLVM::AtomicOrdering order);
mlir::LogicalResult loadAtomic(Translation &t, mlir::LLVM::LoadOp op);
mlir::LogicalResult storeAtomic(Translation &t, mlir::LLVM::StoreOp op);

} // namespace costate::conversion
