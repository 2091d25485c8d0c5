#pragma once
/// Downloads: the host waits for the copy, not for what is queued after it.

#include "runtime/vulkan/Core.h"

namespace costate::runtime::vulkan {

/// Safe to use from several threads.
class Readback {
public:
  explicit Readback(std::shared_ptr<Core> core) : core(std::move(core)) {}
  ~Readback();
  Readback(const Readback &) = delete;

  Status download(void *to, const std::byte *from, size_t bytes);

private:
  /// A copy into memory of the host.
  struct Copy {
    Piece memory = {};
    size_t room = 0;
    Moment done = 0;
    std::byte *to = nullptr; ///< where the bytes go then; null: nowhere
    size_t bytes = 0;
  };

  Status take(Copy &copy, size_t bytes);
  void put(const Copy &copy);
  Status start(Copy &copy, std::byte *to, const std::byte *from, size_t bytes);
  Status finish(Copy &copy);

  std::shared_ptr<Core> core;
  std::mutex mutex;
  std::vector<Copy> idle;
};

} // namespace costate::runtime::vulkan
