#include "runtime/streams/Readback.h"

#include <cstring>

namespace costate::runtime::streams {

/// Larger copies go straight to memory of the caller: drivers have pinned
/// memory of their own for them.
static constexpr size_t slotBytes = size_t(64) << 10;

Readback::~Readback() {
  for (PinnedSlot &slot : idle)
    slot.close(*session);
}

PinnedSlot Readback::take() {
  std::lock_guard lock(mutex);
  if (idle.empty())
    return {};
  PinnedSlot slot = idle.back();
  idle.pop_back();
  return slot;
}

void Readback::put(const PinnedSlot &slot) {
  std::lock_guard lock(mutex);
  idle.push_back(slot);
}

Status Readback::copy(PinnedSlot &slot, void *to, const std::byte *from,
                      size_t bytes) {
  Status status = session->enqueue(session->api().copyToHost, to,
                                   reinterpret_cast<Address>(from), bytes);
  if (status == success)
    status = slot.mark(*session);
  if (status == success)
    status = session->waitFor(slot.done);
  return status;
}

Status Readback::download(PinnedSlot &slot, void *to, const std::byte *from,
                          size_t bytes) {
  if (Status status = slot.open(*session, slotBytes))
    return status;
  if (bytes > slotBytes)
    return copy(slot, to, from, bytes);
  Status status = copy(slot, slot.memory, from, bytes);
  if (status == success)
    std::memcpy(to, slot.memory, bytes);
  return status;
}

Status Readback::download(void *to, const std::byte *from, size_t bytes) {
  PinnedSlot slot = take();
  Status status = download(slot, to, from, bytes);
  put(slot);
  return status;
}

} // namespace costate::runtime::streams
