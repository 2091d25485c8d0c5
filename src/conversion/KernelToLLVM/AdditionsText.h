#pragma once
/// Which additions of a range are made how, for people.

#include "ir/Kernel.h"

#include <string>

namespace costate::conversion {

/// `additions: gathered (line 12), atomic (lines 14, 15)`; empty if
/// work items share nothing that they add to.
std::string additionsText(ir::RangeOp range);

} // namespace costate::conversion
