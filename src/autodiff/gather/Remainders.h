#pragma once
/// Remainders of neighbours' indices.

#include "ir/Kernel.h"

namespace costate::autodiff {

/// Puts choices in the place of remainders as `(i + 1) % n`, in ranges without
/// loops whose index i is below n. With `splits`, which is for CPUs, the
/// interior, where nothing is chosen along the last index, has code of its own.
void chooseRemainders(ir::KernelOp kernel, bool splits);

} // namespace costate::autodiff
