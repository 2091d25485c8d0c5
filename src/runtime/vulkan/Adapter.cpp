#include "runtime/vulkan/Adapter.h"

#include "runtime/vulkan/AdapterReader.h"

#include <algorithm>
#include <charconv>

namespace costate::runtime::vulkan {
namespace {

/// Kinds of devices, the fastest first.
int rankOf(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  default:
    return 3;
  }
}

std::string nameOf(VkPhysicalDevice device) {
  return plainProperties(device).deviceName;
}

std::string namesOf(const std::vector<VkPhysicalDevice> &devices) {
  std::string names;
  for (size_t k = 0; k < devices.size(); ++k)
    names +=
        (k ? ", " : "") + std::to_string(k) + " (" + nameOf(devices[k]) + ")";
  return names;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// The fastest that will do; if none does, why the fastest does not.
Result<Adapter> fastest(std::vector<VkPhysicalDevice> devices) {
  std::ranges::stable_sort(devices, {}, [](VkPhysicalDevice device) {
    return rankOf(plainProperties(device).deviceType);
  });
  Result<Adapter> first = AdapterReader(devices.front()).adapter();
  for (size_t k = 1; k < devices.size() && !first; ++k)
    if (Result<Adapter> next = AdapterReader(devices[k]).adapter())
      return next;
  return first;
}

Result<Adapter> numbered(const std::vector<VkPhysicalDevice> &devices,
                         size_t number) {
  if (number < devices.size())
    return AdapterReader(devices[number]).adapter();
  return Failure{ErrorCode::NoDevice,
                 "there is no Vulkan device number " + std::to_string(number) +
                     ": this machine has " + namesOf(devices)};
}

Result<Adapter> named(const std::vector<VkPhysicalDevice> &devices,
                      const std::string &part) {
  for (VkPhysicalDevice device : devices)
    if (lower(nameOf(device)).find(lower(part)) != std::string::npos)
      return AdapterReader(device).adapter();
  return Failure{ErrorCode::NoDevice, "no Vulkan device has `" + part +
                                          "` in its name: this machine has " +
                                          namesOf(devices)};
}

} // namespace

Result<Adapter> chooseAdapter(const Instance &instance,
                              const std::string &which) {
  Result<std::vector<VkPhysicalDevice>> devices = instance.devices();
  if (!devices)
    return devices.error();
  if (which.empty())
    return fastest(*devices);
  size_t number = 0;
  auto [end, error] =
      std::from_chars(which.data(), which.data() + which.size(), number);
  bool isNumber = error == std::errc() && end == which.data() + which.size();
  return isNumber ? numbered(*devices, number) : named(*devices, which);
}

} // namespace costate::runtime::vulkan
