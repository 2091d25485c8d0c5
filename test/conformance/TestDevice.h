#pragma once
/// The device that tests run on: COSTATE_DEVICE, or the CPU.

#include "costate/device.h"

#include <cstdlib>

namespace costate::test {

inline Device openDevice(DeviceOptions options = {}) {
  const char *chosen = std::getenv("COSTATE_DEVICE");
  return Device::open(chosen && *chosen ? chosen : "cpu", options);
}

/// Of `vulkan:1` it is `vulkan`.
inline std::string kindOf(const Device &device) {
  std::string name = device.name();
  return name.substr(0, name.find(':'));
}

/// Whether functions of maths are those of a GPU, whose last bits differ.
inline bool hasOwnFunctions(const Device &device) {
  return kindOf(device) == "cuda" || kindOf(device) == "vulkan";
}

/// Whether tests run on the CPU, the only device that looks for races.
inline bool isOnCpu() { return openDevice().name() == "cpu"; }

/// Devices that are opened while it lives sort by this rule.
class Sorting {
public:
  explicit Sorting(const char *rule) { setenv("COSTATE_SORT", rule, 1); }
  ~Sorting() { unsetenv("COSTATE_SORT"); }
  Sorting(const Sorting &) = delete;
};

} // namespace costate::test
