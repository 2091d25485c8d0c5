#pragma once
/// LLVM IR to code for Vulkan devices.

#include "base/Result.h"
#include "base/VulkanChip.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
}

namespace costate::compiler {

/// The bytes of a SPIR-V module with an entry point `deviceSymbol(name)` per
/// device function `name` of `module`. Fails for numbers that the device lacks.
Result<std::string> emitSpirv(std::unique_ptr<llvm::Module> module,
                              const VulkanFeatures &features);

} // namespace costate::compiler
