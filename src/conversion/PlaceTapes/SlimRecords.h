#pragma once

#include "ir/Kernel.h"

namespace costate::conversion {

/// Drops from records in loops what follows from the rest of the record at less
/// than saving costs.
void slimRecords(ir::RangeOp range, bool fastMath);

} // namespace costate::conversion
