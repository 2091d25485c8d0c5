#pragma once
/// Uploads by way of pinned memory: the caller's may change at once, and nobody
/// waits for the GPU until all of it is under way.

#include "runtime/cuda/PinnedSlot.h"

#include <array>
#include <mutex>

namespace costate::runtime::cuda {

class Staging {
public:
  explicit Staging(std::shared_ptr<Session> session)
      : session(std::move(session)) {}
  ~Staging();
  Staging(const Staging &) = delete;

  Status upload(std::byte *to, const void *from, size_t bytes);

private:
  Status advance();
  Status uploadPiece(std::byte *to, const std::byte *from, size_t bytes);

  std::shared_ptr<Session> session;
  std::mutex mutex;
  std::array<PinnedSlot, 4> slots;
  size_t current = 0;
  size_t used = 0; ///< bytes of the current slot
};

} // namespace costate::runtime::cuda
