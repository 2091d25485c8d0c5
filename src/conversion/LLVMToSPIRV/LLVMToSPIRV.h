#pragma once
/// Kernels of LLVM IR to SPIR-V for Vulkan.

#include "base/Result.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace costate {
struct VulkanFeatures;
}

namespace costate::conversion {

/// The bytes of a module with an entry point for each kernel (PTX_Kernel) of
/// `module`, which is optimised for `machine`, of NVPTX, and has everything
/// with pointers inlined. What a launch hands over is in base/VulkanChip.h.
Result<std::string> convertToSpirv(std::unique_ptr<llvm::Module> module,
                                   llvm::TargetMachine &machine,
                                   const VulkanFeatures &features);

} // namespace costate::conversion
