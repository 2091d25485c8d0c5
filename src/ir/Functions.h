#pragma once
/// Functions that kernels call: `func.func` and `func.call`. They take arrays
/// and values, which are scalars, and only compute.

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace costate::ir {

/// Refuses functions that a kernel cannot call: such with other arguments and
/// results, more than one block, ranges, calls of themselves, or so many calls
/// that they cannot be made part of a kernel.
mlir::LogicalResult verifyFunctions(mlir::ModuleOp module);

/// Says that calls read the arrays that they pass, and do nothing else, unless
/// their function does.
void registerCallEffects(mlir::DialectRegistry &registry);

mlir::func::FuncOp calleeOf(mlir::func::CallOp call);

/// Whether `function` has no effects, on arrays or others: it needs nothing
/// that only a kernel has.
bool onlyComputes(mlir::func::FuncOp function);

/// Operations without constants, and those of functions that they call.
uint64_t flatSize(mlir::Operation *root);

using FunctionTest = llvm::function_ref<bool(mlir::func::FuncOp)>;

/// Puts what functions compute in the place of their calls in `root`.
void inlineCalls(
    mlir::Operation *root,
    FunctionTest isInlined = [](mlir::func::FuncOp) { return true; });

/// Erases functions of `module` that nothing calls.
void eraseUncalled(mlir::ModuleOp module);

} // namespace costate::ir
