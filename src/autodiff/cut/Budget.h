#pragma once
/// Loops that are cut as far as the memory for a tape asks for it.

#include "autodiff/cut/Segments.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// Cuts the loops of `kernel` that `canRunAgain`, where a work item, or serial
/// code, would save more than `tape.budget` says. How much they save is known
/// when the gradient is there: see resolveSizes. `measured`: the forward sweep
/// says before it runs how much the reverse sweep takes (`tape.claim`), so only
/// loops are cut of which that is known.
void cutByBudget(ir::KernelOp kernel, TripCounts &tripCounts,
                 llvm::function_ref<bool(mlir::Operation *)> canRunAgain,
                 bool measured);

/// Puts numbers in the place of the bytes that cutByBudget has asked for.
void resolveSizes(ir::KernelOp gradient, bool measured);

} // namespace costate::autodiff
