#pragma once
/// Spaces of addresses in LLVM IR for Vulkan.

#include "conversion/KernelForm.h"

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

/// Shared and private pointers among global ones: these are never as high.
constexpr int64_t tagShift = 48, sharedTag = 0x5afe, privateTag = 0x5aff;

/// What a pointer that becomes a global one gets in its upper bits, if it can.
/// One to private memory is compared then, and nothing else.
inline std::optional<int64_t> tagAmongGlobal(mlir::LLVM::AddrSpaceCastOp op) {
  auto isCompared = [](mlir::Operation *user) {
    return mlir::isa<mlir::LLVM::ICmpOp>(user);
  };
  unsigned from = spaceOf(op.getArg());
  if (spaceOf(op.getRes()) != 0)
    return std::nullopt;
  if (from == sharedSpace)
    return sharedTag << tagShift;
  if (from == privateSpace && llvm::all_of(op->getUsers(), isCompared))
    return privateTag << tagShift;
  return std::nullopt;
}

} // namespace costate::conversion
