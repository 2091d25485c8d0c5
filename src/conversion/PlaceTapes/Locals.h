#pragma once
/// Private arrays as a part of what a loop carries: segments that run again
/// find in them what they held before.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// What is in the way of tiles; empty: nothing.
llvm::StringRef obstacleOfLocals(ir::RangeOp range, const TapeShape &shape,
                                 const sizing::Costs &costs);

/// All elements of all arrays, now.
Values elementsOf(RowBuilder &b, mlir::ValueRange locals);
void setElements(RowBuilder &b, mlir::ValueRange locals,
                 mlir::ValueRange elements);

/// Whether counting the rows of `loop` changes private arrays.
bool countingChangesLocals(const TapeShape &shape, const LoopState &loop);

} // namespace costate::conversion
