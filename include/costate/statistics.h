#pragma once
/// What a device has done.

#include <cstdint>

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

  bool operator==(const Statistics &) const = default;
};

} // namespace costate
