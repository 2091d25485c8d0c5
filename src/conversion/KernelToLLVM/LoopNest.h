#pragma once
/// The loops of one chunk of a range.

#include "conversion/KernelToLLVM/Runtime.h"

namespace costate::conversion {

/// Emits one iteration at the given indices; returns its contributions to the
/// sums, as f64.
using Iteration = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange indices)>;

/// The indices of iteration `number`, counted row-major over `extents`.
llvm::SmallVector<mlir::Value> indicesOf(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value number,
                                         mlir::ValueRange extents);

/// Emits loops over the iterations [begin, end), counted row-major over
/// `extents`, and returns the `sumCount` sums. Ranges of several dimensions are
/// rows around an innermost loop over the last one, so that only the borders of
/// rows cost index arithmetic.
llvm::SmallVector<mlir::Value> emitLoops(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value begin, mlir::Value end,
                                         mlir::ValueRange extents,
                                         unsigned sumCount,
                                         Iteration iteration);

} // namespace costate::conversion
