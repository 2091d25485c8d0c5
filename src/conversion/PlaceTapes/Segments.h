#pragma once
/// Loops of the work item itself: first iterations that are kept, and segments
/// of the rest, run again from checkpoints when they are undone.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// In the forward sweep: keeps what fits, and leaves checkpoints of the rest.
void runInSegments(WorkItem &item, mlir::Operation *op, mlir::Value pred);
/// In the reverse sweep.
void undoSegments(WorkItem &item, mlir::scf::ForOp reversed, mlir::Value pred);

} // namespace costate::conversion
