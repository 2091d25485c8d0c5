#pragma once
/// What a thread knows of its launch, and numbers that no driver sees through.

#include "conversion/LLVMToSPIRV/SpirvBuilder.h"

namespace costate::conversion {

mlir::Value launchWord(SpirvBuilder &b, LaunchWord k);
/// The x of a vector.
mlir::Value builtIn(SpirvBuilder &b, llvm::StringRef name);
mlir::Value blockThreads(SpirvBuilder &b);

/// The same condition, but nobody may know.
mlir::Value opaque(SpirvBuilder &b, mlir::Value condition);
/// 0, but no driver knows that.
mlir::Value laneOrZero(SpirvBuilder &b, mlir::Type type);
/// The same number, but no driver knows how it is made, nor that all lanes have
/// it: NVIDIA's (580.159.04) makes wrong code of loops that depend on one.
mlir::Value perLane(SpirvBuilder &b, mlir::Value number);

} // namespace costate::conversion
