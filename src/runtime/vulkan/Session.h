#pragma once
/// An open device and its queue, and what every call to Vulkan needs.

#include "runtime/Counters.h"
#include "runtime/vulkan/Adapter.h"
#include "runtime/vulkan/LoopWatch.h"

#include <algorithm>
#include <atomic>

namespace costate::runtime::vulkan {

/// Shared by a driver and all that it has made, whoever dies last.
class Session {
public:
  static Result<std::shared_ptr<Session>>
  open(std::shared_ptr<Instance> instance, Adapter adapter,
       void (*change)(Api &));
  ~Session();
  Session(const Session &) = delete;

  const Api &api() const { return isForked() ? abandoned : functions; }
  VkDevice device() const { return handle; }
  /// Calls `use(queue)`, one thread at a time.
  template <class Use> Status withQueue(const Use &use) {
    std::lock_guard lock(queueMutex);
    return note(use(work));
  }
  /// Of all kernels: the addresses of their words, of what loops tell, and of
  /// their tables.
  VkPipelineLayout layout() const { return kernels; }
  const Adapter &adapter() const { return opened; }
  /// For when more is known of it; before anybody else has it.
  void setFeatures(const VulkanFeatures &features) {
    opened.features = features;
    opened.properties.chip = vulkanChip(features);
    opened.properties.shape = shapeOf(features);
    opened.properties.endsLoops = features.endsLongLoops;
    opened.properties.blockThreads =
        std::min(opened.properties.blockThreads, features.largestBlock());
  }

  LoopWatch &loops() { return watch; }

  /// As a failure, where `doing` completes "the GPU fails to".
  Result<> result(Status status, const std::string &doing);
  Failure failure(Status status, const std::string &doing);
  /// Whether it is lost; every call fails from then on.
  bool isLost() const { return lost || isForked(); }
  Status note(Status status) {
    if (status == VK_ERROR_DEVICE_LOST)
      lost = true;
    return status;
  }
  /// What the validation layers have found since the last call, and whether
  /// loops were cut.
  Result<> defects();

  /// Of all of its memory that programs can have.
  size_t freeBytes(uint32_t heap) const;
  uint32_t heapOf(uint32_t memoryType) const {
    return memory.memoryTypes[memoryType].heapIndex;
  }
  size_t heapBytes(uint32_t heap) const {
    return memory.memoryHeaps[heap].size;
  }
  /// Among the types with the bits `allowed` and all of `needed`, the one that
  /// has most of `liked` and least of `disliked`; none: -1.
  int memoryType(uint32_t allowed, VkMemoryPropertyFlags needed,
                 VkMemoryPropertyFlags liked,
                 VkMemoryPropertyFlags disliked) const;

  Counters counters;

private:
  Session(std::shared_ptr<Instance> instance, Adapter adapter)
      : instance(std::move(instance)), opened(std::move(adapter)) {}
  Status create();
  Status createLayout();

  std::shared_ptr<Instance> instance;
  Adapter opened;
  Api functions{};
  Api abandoned{}; ///< the same, but nothing is destroyed
  VkDevice handle = VK_NULL_HANDLE;
  std::mutex queueMutex;
  VkQueue work = VK_NULL_HANDLE;
  VkPipelineLayout kernels = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memory{};
  std::atomic<bool> lost = false;
  LoopWatch watch;
};

} // namespace costate::runtime::vulkan
