#pragma once
/// Vulkan as it is found at run time: the loader (libvulkan.so.1), the drivers
/// that it knows, and the validation layers.

// Not to be seen outside: programs have functions of these names.
#pragma GCC visibility push(hidden)
#define VK_NO_PROTOTYPES
#include <volk.h>
#pragma GCC visibility pop
// Structs start with their type, and the rest is 0.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "base/Result.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace costate::runtime::vulkan {

using Status = VkResult; ///< VK_SUCCESS is 0
using Api = VolkDeviceTable;

/// `VK_ERROR_DEVICE_LOST`.
std::string statusText(Status status);

/// Whether this process was forked by one that has used Vulkan: the threads of
/// its drivers are not here, so that whoever waits for them waits forever.
bool isForked();
Failure forkedFailure();

/// The rest of a chain of structs.
template <class Outer, class Inner> void chain(Outer &outer, Inner &inner) {
  inner.pNext = outer.pNext;
  outer.pNext = &inner;
}

/// What the validation layers have said.
class Messages {
public:
  void add(const std::string &text);
  /// All since the last call; empty for none.
  std::string take();

private:
  std::mutex mutex;
  std::string texts;
};

/// Without validation always the same one.
class Instance {
public:
  /// NoDevice says what is missing. Drivers that cannot be loaded are left out.
  static Result<std::shared_ptr<Instance>> open(bool validate);
  ~Instance();
  Instance(const Instance &) = delete;

  VkInstance handle() const { return instance; }
  Messages &messages() { return said; }
  /// In the order of Vulkan.
  Result<std::vector<VkPhysicalDevice>> devices() const;

private:
  Instance() = default;
  Status create(bool validate);
  Status listen();

  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  Messages said;
};

} // namespace costate::runtime::vulkan
