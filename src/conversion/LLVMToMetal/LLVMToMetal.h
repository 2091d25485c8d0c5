#pragma once
/// Kernels of LLVM IR to text of the Metal Shading Language.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate::conversion {

/// A program with a `kernel void` for each kernel (PTX_Kernel) of `module`, by
/// its metalName (base/MetalChip.h); `module`, which is optimised for
/// `machine`, of NVPTX, and has everything with pointers inlined. What a launch
/// hands over is in Prelude.metal.
Result<std::string> convertToMetal(std::unique_ptr<llvm::Module> module,
                                   llvm::TargetMachine &machine);

} // namespace costate::conversion
