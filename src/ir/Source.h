#pragma once
/// Places in the user's source.

#include "mlir/IR/Location.h"

namespace costate::ir {

/// The place in the user's source that `loc` stems from, if any.
mlir::FileLineColLoc sourceOf(mlir::Location loc);

/// `loc`, for a copy of its operation by which a reverse sweep computes a value
/// again.
mlir::Location recomputed(mlir::Location loc);
bool isRecomputed(mlir::Location loc);

} // namespace costate::ir
