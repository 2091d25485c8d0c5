#include "runtime/cuda/Staging.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::cuda {

static constexpr size_t slotBytes = size_t(4) << 20;
static constexpr size_t alignment = 64;

Staging::~Staging() {
  for (PinnedSlot &slot : slots)
    slot.close(*session);
}

/// Goes on to the slot that was left first, and waits until it is free.
Status Staging::advance() {
  if (Status status = slots[current].mark(*session))
    return status;
  current = (current + 1) % slots.size();
  used = 0;
  PinnedSlot &slot = slots[current];
  if (Status status = slot.open(*session, slotBytes))
    return status;
  Status status = session->call(session->api().queryEvent, slot.done);
  return status == notReady ? session->waitFor(slot.done) : status;
}

Status Staging::uploadPiece(std::byte *to, const std::byte *from,
                            size_t bytes) {
  if (used + bytes > slotBytes)
    if (Status status = advance())
      return status;
  std::byte *place = slots[current].memory + used;
  std::memcpy(place, from, bytes);
  used += (bytes + alignment - 1) / alignment * alignment;
  return session->enqueue(session->api().copyToDevice,
                          reinterpret_cast<Address>(to),
                          static_cast<const void *>(place), bytes);
}

Status Staging::upload(std::byte *to, const void *from, size_t bytes) {
  std::lock_guard lock(mutex);
  if (Status status = slots[current].open(*session, slotBytes))
    return status;
  auto source = static_cast<const std::byte *>(from);
  for (size_t done = 0; done < bytes; done += slotBytes) {
    size_t piece = std::min(bytes - done, slotBytes);
    if (Status status = uploadPiece(to + done, source + done, piece))
      return status;
  }
  return success;
}

} // namespace costate::runtime::cuda
