#pragma once
/// How many iterations the loops of a work item take, as far as that is known
/// before they run.

#include "conversion/PlaceTapes/Shape.h"
#include "sizing/Costs.h"

#include "mlir/IR/IRMapping.h"

namespace costate::conversion {

/// Computes the iterations of the loops that push whose bounds, and the
/// conditions around them, follow from indices and arrays; null if those are
/// the same for all work items. Less than 0 for work items without effect.
/// `map`: the indices.
mlir::Value emitDepth(ir::RangeOp range, const TapeShape &shape,
                      const sizing::Costs &costs, mlir::OpBuilder &b,
                      mlir::IRMapping map);

} // namespace costate::conversion
