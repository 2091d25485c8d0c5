#pragma once
/// Gradients that reload what their kernel has stored need memory as its last
/// launch left it.

#include "api/BoundLaunch.h"

namespace costate::detail {

/// To be called after a launch, or as soon as a graph holds it.
void rememberLaunch(const BoundLaunch &launch);

/// Why it is not certain that memory holds what `gradient` needs: it is not as
/// the last launch of the kernel left it, or the kernel has overwritten that.
std::optional<Failure> findObstacle(const BoundLaunch &gradient);

} // namespace costate::detail
