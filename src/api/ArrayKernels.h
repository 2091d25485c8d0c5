#pragma once
/// Kernels over arrays of any type and rank, which are made when they are
/// needed first.

#include "costate/kernel.h"

namespace costate::detail {

/// (array, buffer..., start...), `count` of each: copies slices of the array
/// from `start` on into the buffer, or back. Buffers have the same extents.
enum class Way : uint8_t { IntoBuffer, OutOfBuffer };
const Kernel &slicesKernel(DType type, int rank, int axis, Way way,
                           size_t count);
/// (array, buffer): the same back, where `start` never changes. So the gradient
/// does not have to find out that no two of its work items meet.
const Kernel &unpackKernel(DType type, int rank, int axis, int64_t start);

/// (target, source): `target = source` or `target += source`.
enum class Store : uint8_t { Assign, Add };
const Kernel &wholeKernel(DType type, int rank, Store how);

} // namespace costate::detail
