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
  return kindOf(device) == "cuda" || kindOf(device) == "vulkan" ||
         kindOf(device).starts_with("amd") || kindOf(device) == "hip" ||
         kindOf(device).starts_with("metal");
}

/// Whether tests run on the CPU, the only device that looks for races.
inline bool isOnCpu() { return openDevice().name() == "cpu"; }

/// An environment variable while it lives.
class Setting {
public:
  Setting(const char *name, const char *value) : name(name) {
    if (const char *set = std::getenv(name))
      before = set;
    setenv(name, value, 1);
  }
  ~Setting() {
    if (before)
      setenv(name, before->c_str(), 1);
    else
      unsetenv(name);
  }
  Setting(const Setting &) = delete;

private:
  const char *name;
  std::optional<std::string> before;
};

/// Devices that are opened while it lives sort by this rule.
struct Sorting : Setting {
  explicit Sorting(const char *rule) : Setting("COSTATE_SORT", rule) {}
};

/// The simulated GPU of devices that are opened while it lives.
struct Simulated : Setting {
  Simulated(const std::string &name, const std::string &value)
      : Setting("COSTATE_SIMT", (chosen() + name + "=" + value).c_str()) {}

private:
  static std::string chosen() {
    const char *value = std::getenv("COSTATE_SIMT");
    return value ? std::string(value) + "," : "";
  }
};

} // namespace costate::test
