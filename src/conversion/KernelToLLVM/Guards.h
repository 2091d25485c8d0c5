#pragma once
/// Guards of products against 0 times inf or NaN.

#include "ir/Kernel.h"

namespace costate::conversion {

/// Lets products and sums of products share a guard. What follows from `g * f`
/// by another product with the same `f` is 0 where `g` is: an `f` that is no
/// number leaves no 0 of another `g`. And sums are guarded instead of their
/// terms.
void shareGuards(mlir::Operation *root);

} // namespace costate::conversion
