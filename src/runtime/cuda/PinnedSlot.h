#pragma once
/// Memory of the host that the GPU copies from and to.

#include "runtime/cuda/Session.h"

namespace costate::runtime::cuda {

/// Made when it is first needed; `done` is behind the last copy that used it.
struct PinnedSlot {
  std::byte *memory = nullptr;
  Event done = nullptr;

  Status open(Session &session, size_t bytes);
  void close(Session &session);
  /// `done` is behind all that is queued so far.
  Status mark(Session &session);
};

} // namespace costate::runtime::cuda
