#pragma once
/// Branches of the LLVM dialect to structured control flow.

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace costate::conversion {

/// Makes `scf` operations of all branches of `function`, which has no switches
/// and ends with `llvm.return` only.
mlir::LogicalResult liftControlFlow(mlir::LLVM::LLVMFuncOp function);

} // namespace costate::conversion
