#pragma once
/// Loops in the form that differentiation works on.

#include "ir/Kernel.h"

#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

/// Gives every `scf.for` of `kernel` the bounds 0 and a trip count, and the
/// step 1.
void normalizeLoops(ir::KernelOp kernel);

/// Makes every `scf.while` of `kernel` carry the number of its turns; returns
/// that result, by loop.
llvm::DenseMap<mlir::Operation *, mlir::Value> countTurns(ir::KernelOp kernel);

} // namespace costate::autodiff
