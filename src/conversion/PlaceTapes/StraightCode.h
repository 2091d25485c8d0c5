#pragma once
/// Code of the sweeps without loops on the tape.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Copies `op`; a push writes to `place`, a pop reads from there.
void clone(WorkItem &item, mlir::Operation *op, mlir::IRMapping &at,
           const Place &place);
/// Copies `ops`, where `pred` holds or where it does no harm.
void cloneWhere(WorkItem &item, llvm::ArrayRef<mlir::Operation *> ops,
                mlir::Value pred, mlir::IRMapping &at, const Place &place);

} // namespace costate::conversion
