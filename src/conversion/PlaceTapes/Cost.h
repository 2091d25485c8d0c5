#pragma once
/// What it costs to run code again, beside saving what it computes.

#include "mlir/IR/Operation.h"

namespace costate::conversion {

/// Issue slots of a lane of an H200 for which a word of 4 bytes is written and
/// read: running again beats saving below that.
inline constexpr int64_t slotsOfWord = 20;
/// Likewise, in loops of few iterations in other loops: few rows are under way.
inline constexpr int64_t slotsOfWordOfNest = 30;
/// A sine of f32 where the cosine of the same number is computed as well.
inline constexpr int64_t slotsOfTwin = 4;

/// One of those of f32 in compiler/DeviceMaths.c.
inline constexpr int64_t slotsOfSmallFunction = 26;

/// Issue slots of a lane, roughly; a function of a library, or one of the
/// hardware's.
int64_t slotsOf(mlir::Operation *op, bool fastMath);

} // namespace costate::conversion
