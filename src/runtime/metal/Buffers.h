#pragma once
/// Memory that a GPU and the host share, by the addresses that the GPU has.

#include "runtime/metal/ObjectiveC.h"

#include <cstddef>
#include <map>
#include <mutex>

namespace costate::runtime::metal {

struct Buffer {
  Owned object;
  std::byte *onHost = nullptr, *onDevice = nullptr;
  size_t bytes = 0;
};

class Buffers {
public:
  /// All of them are there for what `queue` runs.
  static Result<> open(Buffers &buffers, const Api &api, Object device,
                       Object queue);

  /// Of zeros. OutOfMemory.
  Result<const Buffer *> allocate(size_t bytes);
  /// Of what starts there; nothing for null.
  void release(std::byte *onDevice);
  void releaseHost(std::byte *onHost);
  std::byte *deviceAddressOf(std::byte *onHost);
  /// Where the host finds what the GPU has at `address`; null: nowhere.
  std::byte *hostAddressOf(const std::byte *address);
  size_t used();

private:
  using Map = std::map<const std::byte *, Buffer>;
  void erase(Map::iterator place);

  const Api *api = nullptr;
  Object device = nullptr;
  Owned residency;
  std::mutex mutex;
  Map all; ///< by the address on the device
  size_t bytesInUse = 0;
};

} // namespace costate::runtime::metal
