#pragma once
/// What stands in front of a segment: the state that records follow from.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Writes it to row `at`, if the loop fits.
void writeCheckpoint(RowBuilder &b, const OpenLoop &loop, mlir::Value at,
                     mlir::ValueRange state);
/// The state in front of iteration `iteration`, of which a checkpoint has
/// `saved`.
Values stateOf(RowBuilder &b, const OpenLoop &loop, mlir::ValueRange saved,
               mlir::Value iteration);
/// The same, from the checkpoint at row `at`.
Values readCheckpoint(RowBuilder &b, const OpenLoop &loop, mlir::Value at,
                      mlir::Value iteration);

} // namespace costate::conversion
