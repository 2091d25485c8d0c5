#pragma once
/// A GPU of Apple by Metal. Compiled on any system, and tested against a fake
/// (FakeMetal.h): it has never run on hardware.

#include "runtime/gpu/Driver.h"
#include "runtime/metal/ObjectiveC.h"

#include <memory>

namespace costate::runtime::metal {

/// The default GPU, by `api`; without, by the one of the system.
Result<std::shared_ptr<gpu::Driver>> openMetal(const Api *api = nullptr);

} // namespace costate::runtime::metal
