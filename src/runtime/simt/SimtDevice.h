#pragma once
/// The host as a GPU: device code runs on its cores, thread by thread. For
/// tests of what GPUs run, on machines without one.

#include "runtime/Device.h"

#include <memory>

namespace costate::runtime {

/// `threads` and `memoryLimit` as in openCpu.
Result<std::shared_ptr<Device>> openSimt(int threads, size_t memoryLimit);

} // namespace costate::runtime
