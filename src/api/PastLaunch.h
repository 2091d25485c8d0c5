#pragma once
/// Gradients that reload what their kernel has stored need memory as its last
/// launch left it.

#include "api/BoundLaunch.h"

namespace costate::detail {

/// To be called after a launch, or as soon as a graph holds it.
void rememberLaunch(const BoundLaunch &launch);

/// Throws CannotReplay if memory is not as the last launch of the kernel left
/// it, or if `gradient` needs what the kernel has overwritten.
void requireReplayable(const BoundLaunch &gradient);

} // namespace costate::detail
