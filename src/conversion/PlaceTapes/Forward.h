#pragma once
/// Iterations of the forward sweep.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Maps what an iteration starts with; returns its body.
mlir::Block *enterIteration(WorkItem &item, const LoopState &loop,
                            mlir::ValueRange state, mlir::Value k,
                            mlir::Value pred, mlir::IRMapping &at);
/// What a `while` passes on at `state`, where `pred` holds; `at` has what that
/// follows from.
Values passedOn(WorkItem &item, const LoopState &loop, mlir::ValueRange state,
                mlir::Value pred, mlir::IRMapping &at);

/// What the loop results in, once `state` is its last one.
Values results(WorkItem &item, const LoopState &loop, mlir::ValueRange state,
               mlir::Value pred, mlir::IRMapping at);
/// Some iterations of any loop.
Outcome run(WorkItem &item, const LoopState &loop, const Iterations &iterations,
            mlir::ValueRange state, const mlir::IRMapping &at,
            const Place &place);
/// A `while`, to its end; leaves its results.
Outcome runOpen(WorkItem &item, const LoopState &loop, mlir::Value pred,
                mlir::ValueRange state, const mlir::IRMapping &at,
                const Place &place);
/// A loop in an iteration of another one.
void runInner(WorkItem &item, mlir::Operation *op, mlir::Value pred,
              mlir::IRMapping &at, Place &place);

} // namespace costate::conversion
