#pragma once
/// Loops that are cut as far as the memory for a tape asks for it.

#include "autodiff/cut/Segments.h"
#include "autodiff/cut/Sizes.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// Cuts the loops of `kernel` that `canRunAgain`, where a work item, or serial
/// code, would save more than `tape.budget` says. How much they save is known
/// when the gradient is there: see resolveSizes. `measured`: the forward sweep
/// says how much the reverse sweep takes (`tape.claim`).
void cutByBudget(ir::KernelOp kernel, LoopNumbers &numbers,
                 TripCounts &tripCounts,
                 llvm::function_ref<bool(mlir::Operation *)> canRunAgain,
                 bool measured);

} // namespace costate::autodiff
