#pragma once
/// Atomics that tell what an element was: where iterations share the element,
/// that depends on their order.

#include "autodiff/Differentiate.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// Makes plain accesses of those that nobody interrupts: in serial code, and of
/// arrays of which each iteration has elements of its own. Likewise of minima
/// and maxima that an element takes which the same part uses otherwise.
void expandFetches(ir::KernelOp kernel);

/// Refuses those of elements of `active` arrays.
mlir::LogicalResult checkFetches(ir::KernelOp primal,
                                 llvm::ArrayRef<bool> active);

/// Puts loads in the place of those that no scratch array repeats. A gradient
/// that still has such loads when it is done needs what cannot be known.
void forgetFetches(ir::KernelOp gradient);
mlir::LogicalResult checkForgotten(ir::KernelOp gradient, Refusal &refusal);

} // namespace costate::autodiff
