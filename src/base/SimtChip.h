#pragma once
/// The host as a GPU, as the compiler sees it: `simt`, or `simt;lanes=64`.

#include "base/GpuShape.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace costate {

/// Whether a warp can have so many: 32, or as many as the largest of AMD.
inline bool isLanes(uint64_t lanes) { return lanes == 32 || lanes == 64; }

inline std::string simtChip(int lanes) {
  return lanes == 32 ? "simt" : "simt;lanes=" + std::to_string(lanes);
}

/// What `simtChip` has printed; none for anything else.
inline std::optional<GpuShape> parseSimtChip(std::string_view text) {
  for (int lanes : {32, 64})
    if (text == simtChip(lanes))
      return GpuShape{.lanes = lanes};
  return std::nullopt;
}

} // namespace costate
