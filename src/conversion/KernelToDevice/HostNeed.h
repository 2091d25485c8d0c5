#pragma once
/// How much a part pushes, as far as the host can tell before it runs.

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::conversion {

/// Emits the bytes of the tape of one thread of `part`, a range or serial code:
/// what its forward sweep pushes if of each branch the side runs that pushes
/// more. Null, and nothing emitted, if iterations follow from what the host
/// does not know.
mlir::Value emitNeed(mlir::ImplicitLocOpBuilder &builder,
                     mlir::Operation *part);

} // namespace costate::conversion
