#pragma once
/// Is memory as the gradient of a launch needs it, though nothing says so?

#include "api/BoundLaunch.h"

namespace costate::detail {

/// What `gradient` reads in the place of versions. Throws CannotReplay if it is
/// not certain that memory holds what it needs and, unless nobody is to look
/// (KernelOptions::gradients), running the launch again does not find it there.
VersionArrays requireReplayable(const BoundLaunch &gradient);

} // namespace costate::detail
