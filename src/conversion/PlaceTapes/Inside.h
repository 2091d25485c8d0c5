#pragma once
/// Iterations that are deeper than all rows: where nothing else is left to try,
/// each of them runs from a checkpoint of its own, as a work item whose loops
/// are cut as well. Two levels of checkpoints lead to it: segments, and the
/// iterations of one.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Runs all iterations, to see whether the inside of each fits after the
/// checkpoints, into `left` rows.
void planInside(WorkItem &item, OpenLoop &loop, mlir::Value left);
/// The iterations of one segment; `state`: in front of it.
Values undoInside(WorkItem &item, const OpenLoop &loop,
                  mlir::scf::ForOp reversed, const Iterations &iterations,
                  mlir::ValueRange state, mlir::ValueRange adjoints);

} // namespace costate::conversion
