#pragma once
/// The CPU of this machine as a device.

#include "runtime/Device.h"

#include <memory>

namespace costate::runtime {

/// `threads` and `memoryLimit` of 0: COSTATE_THREADS and COSTATE_MEMORY_LIMIT,
/// or what the machine has. BadArgument if one of them makes no sense.
Result<std::shared_ptr<Device>>
openCpu(int threads, size_t memoryLimit,
        std::optional<size_t> tapeBudget = std::nullopt);

} // namespace costate::runtime
