#pragma once
/// The loops of one chunk of a range.

#include "base/RangeSums.h"
#include "conversion/KernelToLLVM/Runtime.h"

namespace costate::conversion {

/// How the results of a range are made of what its iterations yield.
struct Summation {
  CostateSums kind = costateFloatSums;

  static Summation of(ir::RangeOp range);
  /// What no iterations give.
  mlir::Value none(mlir::ImplicitLocOpBuilder &builder) const;
  mlir::Value add(mlir::ImplicitLocOpBuilder &builder, mlir::Value sum,
                  mlir::Value term, bool inAnyOrder) const;
  /// A yielded value as it is added: floats as f64.
  mlir::Value term(mlir::ImplicitLocOpBuilder &builder,
                   mlir::Value value) const;
};

/// Emits one iteration at the given indices; returns its terms.
using Iteration = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange indices)>;

/// The indices of iteration `number`, counted row-major over `extents`.
llvm::SmallVector<mlir::Value> indicesOf(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value number,
                                         mlir::ValueRange extents);

/// Emits loops over the iterations [begin, end), counted row-major over
/// `extents`, and returns the `sumCount` results. Ranges of several dimensions
/// are rows around an innermost loop over the last one, so that only the
/// borders of rows cost index arithmetic.
llvm::SmallVector<mlir::Value> emitLoops(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value begin, mlir::Value end,
                                         mlir::ValueRange extents,
                                         unsigned sumCount, Summation summation,
                                         Iteration iteration);

} // namespace costate::conversion
