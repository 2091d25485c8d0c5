#pragma once
/// By how much a value may differ where it is rounded otherwise.

#include "autodiff/rules/Rules.h"

namespace costate::autodiff {

/// What the rounding error of the result of `op`, or of an addition to an
/// element, is measured by, in halves of the distance between numbers near 1.
/// `errors` are those of the operands; null is 0.
///
/// It is the size of the largest term of sums and products that the result
/// follows from, in whichever order they are added and multiplied: what cancels
/// counts as it was before. All other functions begin anew, so that it never
/// becomes more than that by being divided by something small.
mlir::Value roundingError(Builder &b, mlir::Operation *op,
                          llvm::ArrayRef<mlir::Value> errors);

} // namespace costate::autodiff
