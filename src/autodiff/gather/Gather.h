#pragma once
/// Adjoints that neighbours add to, without atomic additions.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Puts in front of each range of `kernel` whose work items add to adjoints of
/// their neighbours one over the elements, which adds up what the work items
/// around each element would have added. `branchless`: at borders it loads
/// something for work items that are not there, rather than ask in between.
void gatherAdditions(ir::KernelOp kernel, bool branchless);

} // namespace costate::autodiff
