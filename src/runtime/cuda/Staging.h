#pragma once
/// Uploads by way of pinned memory: the caller's may change at once, and nobody
/// waits for the GPU until all of it is under way.

#include "runtime/cuda/Session.h"

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
  /// `done` is recorded behind the last copy out of `memory`.
  struct Slot {
    std::byte *memory = nullptr;
    Event done = nullptr;
  };

  Status open(Slot &slot);
  Status advance();
  Status uploadPiece(std::byte *to, const std::byte *from, size_t bytes);

  std::shared_ptr<Session> session;
  std::mutex mutex;
  std::array<Slot, 4> slots;
  size_t current = 0;
  size_t used = 0; ///< bytes of the current slot
};

} // namespace costate::runtime::cuda
