#pragma once
/// All devices, and a kernel that runs on each of them without a compiler.

#include "runtime/Device.h"

#include <string>
#include <vector>

namespace costate::runtime::conformance {

/// `fakecuda` and `fakehip` are the drivers of CUDA and HIP without GPUs.
std::vector<std::string> names();

/// With validation where it costs little. `limit` in bytes. NoDevice if this
/// machine has none.
Result<std::shared_ptr<Device>> open(const std::string &name, size_t limit);

/// y[i] = y[i] * factor + term for all i; u64.
const KernelCode &affine(const std::string &device);

/// The slots of a launch of it.
std::vector<uint64_t> affineArguments(Buffer y, uint64_t factor, uint64_t term);

} // namespace costate::runtime::conformance
