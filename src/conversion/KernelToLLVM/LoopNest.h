#pragma once
/// The loops of one chunk of a range.

#include "base/RangeSums.h"
#include "conversion/KernelToLLVM/Runtime.h"

namespace costate::conversion {

/// How the results of a range are made of what its work items yield.
struct Summation {
  CostateSums kind = costateFloatSums;
  mlir::Value memory = {}; ///< of the loops over pairs

  static Summation of(ir::RangeOp range);
  /// What no work items give.
  mlir::Value none(mlir::ImplicitLocOpBuilder &builder) const;
  llvm::SmallVector<mlir::Value> add(mlir::ImplicitLocOpBuilder &builder,
                                     mlir::ValueRange sums,
                                     mlir::ValueRange terms,
                                     bool inAnyOrder) const;
  /// A yielded value as it is added: floats as f64.
  mlir::Value term(mlir::ImplicitLocOpBuilder &builder,
                   mlir::Value value) const;
};

/// Emits one work item at the given indices; returns its terms.
using WorkItem = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange indices)>;

/// Memory for some pairs, which lives as long as the function runs.
mlir::Value allocatePairs(mlir::ImplicitLocOpBuilder &builder);

/// The least of the pair `best` and of those of the work items (outer..., lo)
/// to (outer..., hi - 1).
llvm::SmallVector<mlir::Value>
emitLeastPair(mlir::ImplicitLocOpBuilder &builder, mlir::Value memory,
              mlir::Value lo, mlir::Value hi, mlir::ValueRange outer,
              mlir::ValueRange best, WorkItem workItem);

/// Emits loops over the work items [begin, end), counted row-major over
/// `extents`, and returns the `sumCount` results. Ranges of several dimensions
/// are rows around an innermost loop over the last one, so that only the
/// borders of rows cost index arithmetic.
llvm::SmallVector<mlir::Value> emitLoops(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value begin, mlir::Value end,
                                         mlir::ValueRange extents,
                                         unsigned sumCount, Summation summation,
                                         WorkItem workItem);

} // namespace costate::conversion
