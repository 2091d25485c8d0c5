#pragma once
/// What kernels for AMD's GPUs, compiled for the host, call of the simulated
/// GPU that they run on.

#include <cstdint>
#include <string_view>

namespace costate {

/// What follows a chip to say that the host runs its kernels: `gfx942;host`.
inline constexpr std::string_view amdOnHost = ";host";

/// What lanes that are together do.
enum class LaneOp : int32_t { Ballot, Read, Meet };

struct AmdHostCalls {
  int64_t (*blockThreads)();
  void (*blockBarrier)();
  /// Of all lanes of a warp, wherever they are, those come together that have
  /// the same path of `length`: the places of loops around them, each with an
  /// iteration, and a place. Least paths come first, as GPUs come together
  /// where branches end. Gives which lanes have `value` 1, or what lane `from`
  /// has: 0 if that is not here.
  uint64_t (*together)(LaneOp op, uint64_t value, int32_t from,
                       const int64_t *path, int64_t length);
};

} // namespace costate
