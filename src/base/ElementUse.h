#pragma once
/// How a work item of a range uses an element of an array.

#include <cstdint>

namespace costate {

/// In terms of the primal: what reads the adjoint of an element has updated the
/// element, and so on. Values are bits, for sets of uses.
enum class ElementUse : uint8_t {
  Load = 1,
  Store = 2,
  Update = 4,
  SharedStore = 8, ///< of a value that all work items have in common
  Minimum = 16,
  Maximum = 32,
  // Updates that do not add; races do not tell them from those that do.
  CombineBits = 4 | 64,
  Exchange = 4 | 128,
};

/// What is said of an update beside that it is one.
inline constexpr uint8_t waysOfUpdates = 64 | 128;

} // namespace costate
