#pragma once
/// Loops and choices of work items that stand in the way of gathering.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Makes straight code of short loops over neighbours, which load at an index
/// of the range plus that of the loop, and indices of the range of loops over
/// elements of which each iteration has its own; and an index of two elements
/// of which a condition loads one. What is left are work items whose additions
/// can be gathered. No value changes.
void unfoldLoops(ir::KernelOp kernel);

} // namespace costate::autodiff
