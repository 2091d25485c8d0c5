#pragma once
/// Store-to-load forwarding within one work item.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Puts stored values in the place of loads of the same element, where nothing
/// between the two may write it: such loads need no replay.
void forwardStores(ir::KernelOp kernel);

} // namespace costate::autodiff
