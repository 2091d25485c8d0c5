#pragma once
/// Who writes an element? Where work items of a range certainly use elements of
/// their own, nobody asks; elsewhere a gradient finds out before it begins.

#include "autodiff/replay/Accesses.h"

namespace costate::autodiff {

/// Puts in front of each range of `gradient` that writes elements of an
/// `active` array, which other work items might use, three ranges that end the
/// launch if they do: one forgets, one notes and one asks who writes an
/// element. They follow the same branches as the range, on the same memory.
void checkOwners(ir::KernelOp gradient, llvm::ArrayRef<bool> active);

/// Whether `op` is one of these ranges: they are parts of the range that they
/// stand in front of, and are not reversed.
bool isOwnerCheck(mlir::Operation *op);

} // namespace costate::autodiff
