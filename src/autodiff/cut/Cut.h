#pragma once
/// Loops whose gradient runs them again from checkpoints.

#include "autodiff/Differentiate.h"

#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

/// Makes of each loop of `kernel` that is marked `costate.checkpoints` a loop
/// over segments, marked `costate.rerun`, and one over what remains. Nothing
/// else changes: what the kernel computes has the same bits. Fails if a loop
/// cannot run again. Loops must be as countIterations leaves them; `tripCounts`
/// is what that has returned, and stays so.
mlir::LogicalResult
cutLoops(ir::KernelOp kernel,
         llvm::DenseMap<mlir::Operation *, mlir::Value> &tripCounts, Cuts cuts,
         Refusal &refusal);

} // namespace costate::autodiff
