#pragma once
/// Which elements of an array a launch touches.

#include "api/Call.h"
#include "runtime/Region.h"

namespace costate::detail {

/// The elements of array argument `index` that `section` describes, with the
/// scalars of `call` filled in.
runtime::Box boxOf(const ArraySection &section, const Call &call, size_t index);

} // namespace costate::detail
