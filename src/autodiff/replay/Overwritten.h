#pragma once
/// Stores that nobody sees.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Erases stores to elements that the same work item certainly stores to again,
/// where nothing between the two may use them. What they store has no adjoint.
void eraseOverwritten(ir::KernelOp kernel);

} // namespace costate::autodiff
