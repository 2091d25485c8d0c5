#pragma once
/// All passes and pipelines of Costate, for `costate-opt`.

namespace mlir {
class DialectRegistry;
}

namespace costate::compiler {

/// Kernel IR and what it is lowered to.
void registerAllDialects(mlir::DialectRegistry &registry);
void registerAllPasses();

} // namespace costate::compiler
