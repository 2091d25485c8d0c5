#pragma once
/// Floats of 64 bits, which not all GPUs have.

#include "mlir/IR/Operation.h"

namespace costate::compiler {

/// Constants do not, as they have no place in the user's code: who takes them
/// does.
bool worksOnDoubles(mlir::Operation *op);

} // namespace costate::compiler
