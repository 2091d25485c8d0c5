#pragma once
/// Gradients of functions that a kernel calls.

#include "ir/Functions.h"

namespace costate::autodiff {

/// The gradient of `function`, appended to its module as `<name>.grad`: it
/// takes the arguments of `function` and an adjoint for each float that this
/// returns, and returns the adjoint of each float that it takes. Computes what
/// it needs of `function` once more. Null, without a diagnostic, for functions
/// that have none: that read arrays, or whose gradient needs a tape.
mlir::func::FuncOp gradientOf(mlir::func::FuncOp function);

} // namespace costate::autodiff
