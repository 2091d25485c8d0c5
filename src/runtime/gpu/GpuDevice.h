#pragma once
/// A GPU as a device: arrays in its memory, launches that host code drives.

#include "runtime/Device.h"
#include "runtime/gpu/Driver.h"
#include "runtime/gpu/Sort.h"

#include <optional>

namespace costate::runtime::gpu {

struct GpuOptions {
  size_t memoryLimit = 0; ///< bytes; 0: what is free now, less a reserve
  /// Bytes for the heap of tapes; none: half of the limit.
  std::optional<size_t> tapeBudget = std::nullopt;
  bool validate = false; ///< see ValidatingDriver.h
  Sorting sorting = Sorting::IfItPays;
};

Result<std::shared_ptr<Device>> openGpu(std::string name, std::string target,
                                        std::shared_ptr<Driver> driver,
                                        const GpuOptions &options);

} // namespace costate::runtime::gpu
