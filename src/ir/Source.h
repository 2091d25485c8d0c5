#pragma once
/// Places in the user's source.

#include "mlir/IR/Location.h"

namespace costate::ir {

/// The place in the user's source that `loc` stems from, if any.
mlir::FileLineColLoc sourceOf(mlir::Location loc);

} // namespace costate::ir
