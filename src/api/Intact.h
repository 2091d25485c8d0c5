#pragma once
/// Is memory as the gradient of a launch needs it, though nothing says so?

#include "api/BoundLaunch.h"

namespace costate::detail {

/// What a launch runs: a gradient reads memory if there is no other because
/// iterations overwrite what it needs.
compiler::Derivation derivationByHand(const Call &call, Chain chain);

/// What `gradient` reads in the place of versions. Throws CannotReplay if it is
/// not certain that memory holds what it needs and, unless nobody is to look
/// (KernelOptions::gradients), running the launch again does not find it there.
VersionArrays requireReplayable(const BoundLaunch &gradient);

} // namespace costate::detail
