#pragma once
/// Both sweeps of a work item.

#include "conversion/PlaceTapes/WorkItem.h"

namespace costate::conversion {

/// Nothing of the work item has run yet.
void startForward(WorkItem &item, const TapeLevel &level);
/// `tiles`: it has loops on the tape.
void emitSweeps(WorkItem &item, bool tiles);

} // namespace costate::conversion
