#pragma once
/// The host as a Metal device: text of Metal's language, compiled as C++, runs
/// on the simulated GPU (simt). An emulation, for tests without an Apple GPU.

#include "base/MetalChip.h"
#include "runtime/gpu/Driver.h"

#include <memory>

namespace costate::runtime::metal {

/// With `threads` of the host.
std::shared_ptr<gpu::Driver> createHostMetal(int threads,
                                             const MetalFeatures &features);

} // namespace costate::runtime::metal
