#pragma once
/// Removal of everything that no effect depends on.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Erases the operations and loop-carried values of `kernel` that no store,
/// update or other effect needs, also those that only feed themselves from
/// iteration to iteration, and what numbered records hold for nobody.
void prune(ir::KernelOp kernel);

/// The same, but ranges stay, so that parts keep their numbers.
void pruneWithinParts(ir::KernelOp kernel);

/// The same for a gradient that has just been made: a loop that is not reversed
/// claims no memory.
void pruneGradient(ir::KernelOp gradient);

} // namespace costate::autodiff
