#pragma once
/// What a work item stores and then loads, or stores again.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Puts stored values in the place of loads of the same element, where nothing
/// between the two may write it: such loads need no replay.
void forwardStores(ir::KernelOp kernel);

/// Erases stores to elements that the same work item certainly stores to again,
/// where nothing between the two may use them. What they store has no adjoint.
void eraseOverwritten(ir::KernelOp kernel);

} // namespace costate::autodiff
