#pragma once
/// What all parts of a driver share: memory and the stream.

#include "runtime/vulkan/Stream.h"

namespace costate::runtime::vulkan {

struct Core {
  static Result<std::shared_ptr<Core>> open(std::shared_ptr<Session> session);
  ~Core();

  /// Where an address of the device is; no buffer: nowhere.
  Place placeOf(const std::byte *address) const {
    auto number = reinterpret_cast<uint64_t>(address);
    Place place = device->find(number);
    return place.buffer ? place : host->find(number);
  }

  std::shared_ptr<Session> session;
  std::shared_ptr<Pool> device, host, written;
  std::unique_ptr<Stream> stream;
};

/// Memory that uploads go through.
struct Slot {
  using Status = vulkan::Status;
  using Queue = Core;

  std::byte *memory = nullptr;

  Status open(Core &core, size_t bytes);
  void close(Core &core);
  /// All that is recorded so far has to be done before it is free.
  Status mark(Core &core);
  Status waitUntilFree(Core &core);
  /// Records a copy of `bytes` at `place` in `memory`.
  Status send(Core &core, std::byte *to, size_t place, size_t bytes);

private:
  uint64_t address = 0;
  Moment inUse = 0;
};

} // namespace costate::runtime::vulkan
