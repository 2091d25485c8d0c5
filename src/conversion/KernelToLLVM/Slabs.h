#pragma once
/// Additions that only work items with the same first index make.

#include "ir/Kernel.h"

namespace costate::conversion {

/// Marks the additions of `range` to elements that all of their work items
/// find by the first index of the range (`slabAttr`). False if there are none.
bool markSlabs(ir::RangeOp range);

} // namespace costate::conversion
