#pragma once
/// Downloads: the host waits for the copy, not for what is queued after it.

#include "runtime/streams/PinnedSlot.h"

#include <mutex>
#include <vector>

namespace costate::runtime::streams {

class Readback {
public:
  explicit Readback(std::shared_ptr<Session> session)
      : session(std::move(session)) {}
  ~Readback();
  Readback(const Readback &) = delete;

  Status download(void *to, const std::byte *from, size_t bytes);

private:
  PinnedSlot take();
  void put(const PinnedSlot &slot);
  Status download(PinnedSlot &slot, void *to, const std::byte *from,
                  size_t bytes);
  Status copy(PinnedSlot &slot, void *to, const std::byte *from, size_t bytes);

  std::shared_ptr<Session> session;
  std::mutex mutex;
  std::vector<PinnedSlot> idle;
};

} // namespace costate::runtime::streams
