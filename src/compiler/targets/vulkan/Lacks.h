#pragma once
/// What kernels ask for that devices of Vulkan may lack.

#include "base/VulkanChip.h"
#include "compiler/targets/TargetBackend.h"

namespace costate::compiler {

/// Numbers and operations of warps that `op` needs, of which a device with
/// these features has none.
std::optional<Fault> lackOf(mlir::Operation *op, const VulkanFeatures &has);

} // namespace costate::compiler
