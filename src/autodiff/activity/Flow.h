#pragma once
/// How values pass through regions.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// What `value`, a result or an argument of an operation with regions, may
/// become or hold: what branches and ranges yield, and all that a loop carries
/// in the same place. Empty for other values.
llvm::SmallVector<mlir::Value> sourcesOf(mlir::Value value);

/// The other way round: what values below `root` become.
llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>>
flowsIn(mlir::Operation *root);

} // namespace costate::autodiff
