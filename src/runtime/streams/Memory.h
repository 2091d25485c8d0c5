#pragma once
/// Memory of one GPU, in the order of its stream.

#include "runtime/streams/Session.h"

#include <mutex>
#include <vector>

namespace costate::runtime::streams {

/// Freed memory is kept for the next allocation; without pools, which some
/// virtual GPUs and old drivers lack, it waits for the queue instead.
class Memory {
public:
  static Result<std::unique_ptr<Memory>> open(std::shared_ptr<Session> session,
                                              DeviceNumber device, size_t total,
                                              bool hasPools);
  ~Memory();
  Memory(const Memory &) = delete;

  Result<std::byte *> allocate(size_t bytes);
  void release(std::byte *address);
  size_t freeBytes() const;

private:
  Memory(std::shared_ptr<Session> session, size_t total)
      : session(std::move(session)), total(total) {}
  Status createPool(DeviceNumber device);
  Status tryAllocate(Address &address, size_t bytes) const;
  void trim() const;
  Status free(Address address) const;
  void freeReleased();
  size_t poolBytes(PoolAttribute attribute) const;

  std::shared_ptr<Session> session;
  size_t total;
  Pool pool = nullptr;
  std::mutex mutex;
  std::vector<Address> released; ///< and not freed yet
};

} // namespace costate::runtime::streams
