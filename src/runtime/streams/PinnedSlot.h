#pragma once
/// Memory of the host that the GPU copies from and to.

#include "runtime/streams/Session.h"

namespace costate::runtime::streams {

/// Made when it is first needed; `done` is after the last copy that used it.
struct PinnedSlot {
  using Status = streams::Status;
  using Queue = Session;

  std::byte *memory = nullptr;
  Event done = nullptr;

  Status open(Session &session, size_t bytes);
  void close(Session &session);
  /// `done` is after all that is queued so far.
  Status mark(Session &session);
  /// Until `done`; counts as waiting only if it is not yet.
  Status waitUntilFree(Session &session);
  /// Queues a copy of `bytes` at `place` in `memory`.
  Status send(Session &session, std::byte *to, size_t place, size_t bytes);
};

} // namespace costate::runtime::streams
