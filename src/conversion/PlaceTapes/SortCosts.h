#pragma once
/// What work items of different depth cost a warp, and what sorting them costs.

#include "conversion/PlaceTapes/Shape.h"
#include "sizing/Costs.h"

namespace costate::conversion {

/// Issue slots; iterations of inner loops are guessed.
struct SortCosts {
  int64_t iteration = 0; ///< of the loops of the work item, forth and back
  /// What a work item and an iteration lose if lanes have work items that are
  /// not neighbours in memory.
  int64_t uncoalescedWorkItem = 0, uncoalescedIteration = 0;
};

SortCosts sortCostsOf(ir::RangeOp range, const TapeShape &shape,
                      const sizing::Costs &table);

} // namespace costate::conversion
