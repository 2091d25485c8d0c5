#include "runtime/cuda/Staging.h"

#include <algorithm>
#include <cstring>

namespace costate::runtime::cuda {

static constexpr size_t slotBytes = size_t(4) << 20;
static constexpr size_t alignment = 64;

Staging::~Staging() {
  const Api &api = session->api();
  for (Slot &slot : slots) {
    if (slot.done)
      (void)session->call(api.destroyEvent, slot.done);
    if (slot.memory)
      (void)session->call(api.freeHost, static_cast<void *>(slot.memory));
  }
}

/// Slots are made when they are first needed.
Status Staging::open(Slot &slot) {
  const Api &api = session->api();
  if (!slot.done)
    if (Status status =
            session->call(api.createEvent, &slot.done, eventWithoutTime))
      return status;
  if (slot.memory)
    return success;
  void *memory = nullptr;
  Status status = session->call(api.allocateHost, &memory, slotBytes, 0u);
  slot.memory = static_cast<std::byte *>(memory);
  return status;
}

/// Goes on to the slot that was left first, and waits until it is free.
Status Staging::advance() {
  const Api &api = session->api();
  if (Status status = session->call(api.recordEvent, slots[current].done,
                                    session->stream()))
    return status;
  current = (current + 1) % slots.size();
  used = 0;
  if (Status status = open(slots[current]))
    return status;
  return session->call(api.waitForEvent, slots[current].done);
}

Status Staging::uploadPiece(std::byte *to, const std::byte *from,
                            size_t bytes) {
  if (used + bytes > slotBytes)
    if (Status status = advance())
      return status;
  std::byte *place = slots[current].memory + used;
  std::memcpy(place, from, bytes);
  used += (bytes + alignment - 1) / alignment * alignment;
  return session->call(
      session->api().copyToDevice, reinterpret_cast<Address>(to),
      static_cast<const void *>(place), bytes, session->stream());
}

Status Staging::upload(std::byte *to, const void *from, size_t bytes) {
  std::lock_guard lock(mutex);
  if (Status status = open(slots[current]))
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
