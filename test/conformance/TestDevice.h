#pragma once
/// The device that tests run on: COSTATE_DEVICE, or the CPU.

#include "costate/device.h"

#include <cstdlib>

namespace costate::test {

inline Device openDevice(DeviceOptions options = {}) {
  const char *chosen = std::getenv("COSTATE_DEVICE");
  return Device::open(chosen && *chosen ? chosen : "cpu", options);
}

/// Whether tests run on the CPU, the only device that looks for races.
inline bool isOnCpu() { return openDevice().name() == "cpu"; }

} // namespace costate::test
