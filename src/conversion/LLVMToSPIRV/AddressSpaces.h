#pragma once
/// Spaces of addresses in LLVM IR for Vulkan.

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace costate::conversion {

constexpr unsigned sharedSpace = 3;
constexpr unsigned constantSpace = 4;

/// Whether addresses are those of the device. Tables of constants are there as
/// well.
inline bool isGlobal(unsigned space) {
  return space <= 1 || space == constantSpace;
}

inline unsigned spaceOf(mlir::Value pointer) {
  return mlir::cast<mlir::LLVM::LLVMPointerType>(pointer.getType())
      .getAddressSpace();
}

/// A shared pointer among global ones: these are never as high.
constexpr int64_t sharedTagShift = 48, sharedTag = 0x5afe;

} // namespace costate::conversion
