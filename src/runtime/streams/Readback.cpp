#include "runtime/streams/Readback.h"

#include <atomic>
#include <cstring>

namespace costate::runtime::streams {

/// Larger copies go straight to memory of the caller: drivers have pinned
/// memory of their own for them.
static constexpr size_t slotBytes = size_t(64) << 10;

/// So few are copied by a kernel, which costs less than a copy and an event.
static constexpr size_t toldBytes = 4096;

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

Status Readback::listen(PinnedSlot &slot, const std::byte *from, size_t bytes) {
  auto *place = reinterpret_cast<uint64_t *>(slot.memory + slotBytes);
  std::atomic_ref<uint64_t> told(*place);
  told = 0;
  if (Status status = tell(slot.memory, from, bytes, place))
    return status;
  return session->waitUntil([&] { return told != 0; });
}

Status Readback::download(PinnedSlot &slot, void *to, const std::byte *from,
                          size_t bytes) {
  if (Status status = slot.open(*session, slotBytes + sizeof(uint64_t)))
    return status;
  if (bytes > slotBytes)
    return copy(slot, to, from, bytes);
  Status status = bytes > toldBytes ? notSupported : listen(slot, from, bytes);
  if (status == notSupported)
    status = copy(slot, slot.memory, from, bytes);
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
