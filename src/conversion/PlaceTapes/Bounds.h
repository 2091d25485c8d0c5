#pragma once
/// How many iterations loops on the tape take.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Of this lane, where `pred` holds.
mlir::Value ownIterations(WorkItem &item, mlir::Operation *loop,
                          mlir::Value pred, const mlir::IRMapping &at);
/// Whether all lanes with a work item have as many iterations.
bool areSame(const WorkItem &item, mlir::Operation *loop, mlir::Value pred);
/// Of any lane; bounds from outside of the range are the same for all.
mlir::Value maxTripCount(WorkItem &item, mlir::Operation *loop,
                         mlir::Value pred, mlir::Value own);

} // namespace costate::conversion
