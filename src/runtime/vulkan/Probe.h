#pragma once
/// What devices do not tell, found out by kernels.

#include "base/VulkanChip.h"
#include "runtime/gpu/Driver.h"

namespace costate::runtime::vulkan {

/// Fills in what Vulkan does not say: `fma32`, `div32`, `sqrt32`, the same of
/// f64, and `endsLongLoops`. Once in a process for each `name`, of a device and
/// its driver.
Result<> probe(gpu::Driver &driver, const std::string &name,
               VulkanFeatures &features);

} // namespace costate::runtime::vulkan
