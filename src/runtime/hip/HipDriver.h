#pragma once
/// AMD GPUs by HIP: code is a code object, in which a kernel
/// `deviceSymbol(symbol)` takes the words of a launch by value. Tested against
/// a fake (FakeHip.h): it has never run on hardware.

#include "runtime/gpu/Driver.h"
#include "runtime/hip/HipApi.h"

namespace costate::runtime::hip {

/// The GPU number `ordinal`, as HIP counts them. NoDevice says what is missing
/// and what to do.
Result<std::shared_ptr<gpu::Driver>> openHip(int ordinal);
/// The same through `api`, which is initialised.
Result<std::shared_ptr<gpu::Driver>> openHip(const HipApi &api, int ordinal);

} // namespace costate::runtime::hip
