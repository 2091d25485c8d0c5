#pragma once
/// The device of launches that are given no array.

#include "costate/device.h"

namespace costate::detail {

/// From now on that of all threads; none: Device::best() again.
void setDefaultDevice(std::optional<Device> device);
std::shared_ptr<runtime::Device> defaultDevice();

} // namespace costate::detail
