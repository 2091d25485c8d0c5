#pragma once
/// Sums of 64 bits of which a driver may make saturated numbers. Of
/// `x < y ? 0 : x - y` and `max(x, y) - y` LLVM makes one operation, whose high
/// half NVIDIA's driver (580.159.04) leaves to chance.

namespace mlir {
class Operation;
class Value;
} // namespace mlir

namespace costate::conversion {

/// Whether it adds or subtracts integers of 64 bits.
bool isWideSum(mlir::Operation *op);

/// Whether something may choose a limit instead of what this wide sum gives.
bool maySaturate(mlir::Operation *sum);

/// Whether `value` may be an extremum of `other`, or of `~other`, for which any
/// xor is taken: `min(x, ~y) + y` is saturated as well.
bool isExtremumOf(mlir::Value value, mlir::Value other);

} // namespace costate::conversion
