#pragma once
/// The host as an AMD GPU: kernels for one, but for the last step of their
/// compilation, run on the simulated GPU. For tests.

#include "base/Result.h"
#include "runtime/gpu/Driver.h"

#include <memory>
#include <string>

namespace costate::runtime::hip {

/// `chip` as `gfx942`; `threads` of the host. NoDevice: there is no such chip.
Result<std::shared_ptr<gpu::Driver>> createHostAmd(int threads,
                                                   const std::string &chip);

} // namespace costate::runtime::hip
