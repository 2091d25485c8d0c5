#pragma once
/// What iterations of different depth cost a warp, and what sorting them costs.

#include "conversion/PlaceTapes/Shape.h"

namespace costate::conversion {

/// Issue slots; turns of inner loops are guessed.
struct SortCosts {
  int64_t turn = 0; ///< of the loops of the iteration, forth and back
  /// What an iteration and a turn lose if lanes have iterations that are not
  /// neighbours in memory.
  int64_t strayItem = 0, strayTurn = 0;
};

SortCosts sortCostsOf(ir::RangeOp range, const TapeShape &shape, bool fastMath);

} // namespace costate::conversion
