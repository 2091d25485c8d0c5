#pragma once
/// Adjoints that neighbours add to, without atomic additions.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Puts in front of each range of `kernel` whose work items add to adjoints of
/// their neighbours one over the elements, which adds up what the work items
/// around each element would have added. `numbered`, for GPUs: elements of the
/// interior come before those of the border, and at borders something is loaded
/// for work items that are not there, rather than asked in between.
void gatherAdditions(ir::KernelOp kernel, bool numbered);

} // namespace costate::autodiff
