#pragma once
/// Uploads by way of memory that a GPU copies from: the caller's may change at
/// once, and nobody waits for the GPU until all of that memory is under way.

#include "base/Fork.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>

namespace costate::runtime::gpu {

/// `Slot`, of a driver: memory of the host, made by `open`. A Status is false
/// for success.
template <class Slot> class Staging {
public:
  using Status = typename Slot::Status;
  using Queue = typename Slot::Queue;

  explicit Staging(std::shared_ptr<Queue> queue) : queue(std::move(queue)) {}
  ~Staging() {
    for (Slot &slot : slots)
      slot.close(*queue);
  }
  Staging(const Staging &) = delete;

  Status upload(std::byte *to, const void *from, size_t bytes) {
    std::lock_guard lock(mutex);
    if (Status status = slots[current].open(*queue, slotBytes))
      return status;
    auto source = static_cast<const std::byte *>(from);
    for (size_t done = 0; done < bytes; done += slotBytes) {
      size_t piece = std::min(bytes - done, slotBytes);
      if (Status status = uploadPiece(to + done, source + done, piece))
        return status;
    }
    return Status();
  }

private:
  static constexpr size_t slotBytes = size_t(4) << 20;
  static constexpr size_t alignment = 64;

  /// Goes on to the slot that was left first, and waits until it is free.
  Status advance() {
    if (Status status = slots[current].mark(*queue))
      return status;
    current = (current + 1) % slots.size();
    used = 0;
    if (Status status = slots[current].open(*queue, slotBytes))
      return status;
    return slots[current].waitUntilFree(*queue);
  }

  Status uploadPiece(std::byte *to, const std::byte *from, size_t bytes) {
    if (used + bytes > slotBytes)
      if (Status status = advance())
        return status;
    size_t place = used;
    std::memcpy(slots[current].memory + place, from, bytes);
    used += (bytes + alignment - 1) / alignment * alignment;
    return slots[current].send(*queue, to, place, bytes);
  }

  std::shared_ptr<Queue> queue;
  Mutex mutex;
  std::array<Slot, 4> slots;
  size_t current = 0;
  size_t used = 0; ///< bytes of the current slot
};

} // namespace costate::runtime::gpu
