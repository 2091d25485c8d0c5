#pragma once
/// Places in the user's source.

#include "mlir/IR/Location.h"

namespace costate::ir {

/// The place in the user's source that `loc` stems from, if any.
mlir::FileLineColLoc sourceOf(mlir::Location loc);

/// On a `costate.assert refuses`: an array of places, for each `@` of its text.
inline constexpr llvm::StringLiteral placesAttr = "costate.places";

/// `loc`, for a copy of its operation by which a reverse sweep computes a value
/// again.
mlir::Location recomputed(mlir::Location loc);
bool isRecomputed(mlir::Location loc);

} // namespace costate::ir
