#pragma once
/// How many turns the loops of an iteration take, as far as that is known
/// before they run.

#include "conversion/PlaceTapes/Shape.h"

#include "mlir/IR/IRMapping.h"

namespace costate::conversion {

/// Computes the turns of the loops that push whose bounds, and the conditions
/// around them, follow from indices and arrays; null if those are the same for
/// all iterations. Less than 0 for iterations without effect. `map`: the
/// indices.
mlir::Value emitDepth(ir::RangeOp range, const TapeShape &shape,
                      mlir::OpBuilder &b, mlir::IRMapping map);

} // namespace costate::conversion
