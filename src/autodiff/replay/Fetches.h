#pragma once
/// Atomics that tell what an element was: where work items share the element,
/// that depends on their order.

#include "autodiff/Differentiate.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// On the loads of tangent kernels that tell what an element has become by a
/// minimum or maximum.
inline constexpr llvm::StringLiteral becomesAttr = "costate.becomes";

/// Whether such loads count as other uses of the element. In forward mode they
/// do not: the tangent of a tangent goes where the tangent goes, on ties too.
enum class Becomes { Used, Unused };

/// Makes plain accesses of those that nobody interrupts: in serial code, and of
/// arrays of which each work item has elements of its own. Likewise of minima
/// and maxima that an element takes which the same part uses otherwise.
void expandFetches(ir::KernelOp kernel, Becomes becomes = Becomes::Used);

/// Whether `atomic_mul` has a derivative where work items are found to have
/// elements of their own: in gradients, which find that out (Owners.h).
enum class Products { Refused, OfOwn };

/// Refuses those of elements of `active` arrays.
mlir::LogicalResult checkFetches(ir::KernelOp primal,
                                 llvm::ArrayRef<bool> active,
                                 Products products);

/// Makes plain accesses of products, as if nobody interrupted them.
void expandProducts(ir::KernelOp gradient, llvm::ArrayRef<bool> active);

/// On the loads that these products have become.
inline constexpr llvm::StringLiteral productAttr = "costate.product";

/// Puts loads in the place of those that no scratch array repeats. A gradient
/// that still has such loads when it is done needs what cannot be known.
void forgetFetches(ir::KernelOp gradient);
mlir::LogicalResult checkForgotten(ir::KernelOp gradient, Refusal &refusal);

} // namespace costate::autodiff
