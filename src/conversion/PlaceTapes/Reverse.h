#pragma once
/// Iterations of the reverse sweep.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// A leaf starts at `row`. `same`: all lanes that count have all iterations.
Values undoLeaf(WorkItem &item, mlir::scf::ForOp reversed,
                const Iterations &iterations, mlir::Value row,
                mlir::ValueRange adjoints, const mlir::IRMapping &at,
                bool same = false);
/// A nest ends at `row`, which becomes its start.
Values undoNest(WorkItem &item, mlir::scf::ForOp reversed,
                const Iterations &iterations, mlir::Value &row,
                mlir::ValueRange adjoints, const mlir::IRMapping &at);
/// A loop in an iteration of another one.
void undoInner(WorkItem &item, mlir::scf::ForOp reversed, mlir::Value pred,
               mlir::IRMapping &at, mlir::Value &row);

} // namespace costate::conversion
