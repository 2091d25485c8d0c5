#include "runtime/streams/PinnedSlot.h"

namespace costate::runtime::streams {

Status PinnedSlot::open(Session &session, size_t bytes) {
  const Api &api = session.api();
  if (!done)
    if (Status status = session.call(api.createEvent, &done, eventWithoutTime))
      return status;
  if (memory)
    return success;
  void *made = nullptr;
  Status status = session.call(api.allocateHost, &made, bytes, 0u);
  memory = static_cast<std::byte *>(made);
  return status;
}

void PinnedSlot::close(Session &session) {
  const Api &api = session.api();
  if (done)
    (void)session.call(api.destroyEvent, done);
  if (memory)
    (void)session.call(api.freeHost, static_cast<void *>(memory));
}

Status PinnedSlot::mark(Session &session) {
  return session.enqueue(session.api().recordEvent, done);
}

Status PinnedSlot::waitUntilFree(Session &session) {
  Status status = session.call(session.api().queryEvent, done);
  return status == notReady ? session.waitFor(done) : status;
}

Status PinnedSlot::send(Session &session, std::byte *to, size_t place,
                        size_t bytes) {
  return session.enqueue(session.api().copyToDevice,
                         reinterpret_cast<Address>(to),
                         static_cast<const void *>(memory + place), bytes);
}

} // namespace costate::runtime::streams
