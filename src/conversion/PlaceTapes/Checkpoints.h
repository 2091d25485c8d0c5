#pragma once
/// What stands in front of a segment: the state that records follow from.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Of the `rows` of `iterations`, of `unit` rows each, those for as many
/// checkpoints as the user has asked for, and a segment; `few` at least. Nobody
/// asks: all. All are i64.
mlir::Value rowsOfCheckpoints(RowBuilder &b, const LoopState &state,
                              mlir::Value iterations, mlir::Value unit,
                              mlir::Value rows, mlir::Value few);

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
