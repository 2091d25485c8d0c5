#pragma once
/// How a loop becomes one over its segments and one over the rest.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

using TripCounts = llvm::DenseMap<mlir::Operation *, mlir::Value>;

/// How the iterations of a loop are divided.
struct Segments {
  mlir::Value count, length; ///< all have the same length
  mlir::Value rest;          ///< iterations behind them
};

/// What the two become.
struct Parts {
  mlir::scf::ForOp segments, rest;
};

/// Cuts a loop with the bounds 0 and a trip count, and the step 1, and keeps
/// `tripCounts` (see countIterations) right.
Parts cutInto(const Segments &segments, mlir::scf::ForOp loop,
              TripCounts &tripCounts);

} // namespace costate::autodiff
