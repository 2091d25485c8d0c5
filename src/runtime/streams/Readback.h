#pragma once
/// Downloads: the host waits for the copy, not for what is queued after it.

#include "runtime/streams/PinnedSlot.h"

#include <functional>
#include <mutex>
#include <vector>

namespace costate::runtime::streams {

/// Queues what copies some bytes to memory of the host and stores 1 in `told`
/// afterwards; `notSupported` if nothing can.
using Tell = std::function<Status(std::byte *to, const std::byte *from,
                                  size_t bytes, uint64_t *told)>;

class Readback {
public:
  Readback(std::shared_ptr<Session> session, Tell tell)
      : session(std::move(session)), tell(std::move(tell)) {}
  ~Readback();
  Readback(const Readback &) = delete;

  Status download(void *to, const std::byte *from, size_t bytes);

private:
  PinnedSlot take();
  void put(const PinnedSlot &slot);
  Status download(PinnedSlot &slot, void *to, const std::byte *from,
                  size_t bytes);
  Status copy(PinnedSlot &slot, void *to, const std::byte *from, size_t bytes);
  Status listen(PinnedSlot &slot, const std::byte *from, size_t bytes);

  std::shared_ptr<Session> session;
  const Tell tell;
  std::mutex mutex;
  std::vector<PinnedSlot> idle;
};

} // namespace costate::runtime::streams
