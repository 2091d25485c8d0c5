#pragma once
/// Which iterations of a loop of the work item are kept, and how the others are
/// cut.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// The need of all iterations. Where no slice tells it they run, and write what
/// fits into `left` rows.
Outcome countRows(WorkItem &item, OpenLoop &loop, mlir::Value pred,
                  mlir::Value left);
/// Fills in how the iterations are cut; what does not fit is one segment.
/// Returns whether all are kept.
mlir::Value planSegments(WorkItem &item, OpenLoop &loop, const Outcome &whole,
                         mlir::Value left);

} // namespace costate::conversion
