#pragma once
/// What compiled code and the runtime of a CPU share about the order of work
/// items by the lengths of their loops.

#include <cstdint>

namespace costate {

/// Work items that lanes choose their neighbours from.
inline constexpr int64_t orderedBlock = 1024;

} // namespace costate
