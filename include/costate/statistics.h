#pragma once
/// What a device has done.

#include <cstdint>
#include <tuple>

namespace costate {

struct Statistics {
  /// On a GPU: of a range, of a piece of serial code, of an addition of partial
  /// sums. On a CPU: of a kernel.
  uint64_t launches = 0;
  uint64_t uploads = 0;   ///< copies from the host
  uint64_t downloads = 0; ///< copies to the host
  uint64_t copies = 0;    ///< from array to array
  uint64_t fills = 0;     ///< also of new arrays, with zeros
  /// Times that the host has waited for a GPU: to read from it, to be sure that
  /// it is done, for room.
  uint64_t synchronizations = 0;

  /// Of kernels themselves and not of their gradients, one each on any device;
  /// not compared, as `launches` counts what they are on the device.
  uint64_t primal_launches = 0;

  bool operator==(const Statistics &other) const {
    auto costs = [](const Statistics &one) {
      return std::tie(one.launches, one.uploads, one.downloads, one.copies,
                      one.fills, one.synchronizations);
    };
    return costs(*this) == costs(other);
  }
};

} // namespace costate
