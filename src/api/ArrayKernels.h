#pragma once
/// Kernels over arrays of any type and rank, which are made when they are
/// needed first.

#include "costate/kernel.h"

namespace costate::detail {

/// (array, buffer, start): copies slices of the array from `start` on into the
/// buffer, or back.
enum class Way : uint8_t { IntoBuffer, OutOfBuffer };
const Kernel &slicesKernel(DType type, int rank, int axis, Way way);

/// (target, source): `target = source` or `target += source`.
enum class Store : uint8_t { Assign, Add };
const Kernel &wholeKernel(DType type, int rank, Store how);

} // namespace costate::detail
