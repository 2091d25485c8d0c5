#pragma once
/// Devices whose loops end after some iterations
/// (`VulkanFeatures::endsLongLoops`): which kernels were cut.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace costate::runtime::vulkan {

/// Thread-safe, but for `start`.
class LoopWatch {
public:
  static constexpr size_t cells = 256;

  /// `host`: u32 for each of `cells` kernels, all 0, which the device has at
  /// `address`.
  void start(uint32_t *host, uint64_t address) {
    told = host;
    onDevice = address;
  }
  /// Where `kernel` tells that its loops were cut; 0: nobody watches. The last
  /// cell is that of all for which there is none.
  uint64_t cellOf(const std::string &kernel) {
    if (!told)
      return 0;
    std::lock_guard lock(mutex);
    if (kernels.size() < cells)
      kernels.push_back(kernel);
    return onDevice + (kernels.size() - 1) * sizeof(uint32_t);
  }
  /// A kernel that was cut since the last call; empty: none.
  std::string take() {
    std::lock_guard lock(mutex);
    std::string found;
    for (size_t k = 0; told && k < kernels.size(); ++k)
      if (std::atomic_ref(told[k]).exchange(0))
        found = kernels[k];
    return found;
  }

private:
  std::mutex mutex;
  std::vector<std::string> kernels; ///< of each cell
  uint32_t *told = nullptr;
  uint64_t onDevice = 0;
};

} // namespace costate::runtime::vulkan
