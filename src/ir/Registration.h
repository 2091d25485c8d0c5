#pragma once
/// The dialects that kernel IR is made of.

#include "mlir/IR/BuiltinOps.h"

namespace costate::ir {

/// Registers the dialects of kernel IR: costate, tape, arith, func, math, scf.
void registerDialects(mlir::DialectRegistry &registry);

/// Refuses a text with operations of other dialects, MLIR's own casts too.
mlir::LogicalResult verifyOperations(mlir::ModuleOp module);

} // namespace costate::ir
