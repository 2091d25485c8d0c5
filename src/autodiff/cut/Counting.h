#pragma once
/// Loops of unknown length that are counted before they run.

#include "ir/Kernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

/// On a loop that only counts, or prepares that: it has no derivative.
inline constexpr llvm::StringLiteral countsAttr = "costate.counts";

/// Puts in front of `loop` a copy that only counts its iterations, and makes of
/// `loop` one of that many; null, with nothing changed, if what comes before
/// its condition does more than compute. For `tripCounts` see countIterations.
mlir::scf::ForOp
countFirst(mlir::scf::WhileOp loop,
           llvm::DenseMap<mlir::Operation *, mlir::Value> &tripCounts);

} // namespace costate::autodiff
