#pragma once
/// A GPU as a device: arrays in its memory, launches that host code drives.

#include "runtime/Device.h"
#include "runtime/gpu/Driver.h"

namespace costate::runtime::gpu {

/// `memoryLimit` of 0: what the GPU has free now, less a reserve. `validate`:
/// as ValidatingDriver.h says.
Result<std::shared_ptr<Device>> openGpu(std::string name, std::string target,
                                        std::shared_ptr<Driver> driver,
                                        size_t memoryLimit,
                                        bool validate = false);

} // namespace costate::runtime::gpu
