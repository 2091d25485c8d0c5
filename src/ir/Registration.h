#pragma once
/// The dialects that kernel IR is made of.

namespace mlir {
class DialectRegistry;
}

namespace costate::ir {

/// Registers the dialects of kernel IR: costate, tape, arith, math, scf.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace costate::ir
