#pragma once
/// What may be computed of a work item before it runs: a guess that costs
/// little, since nothing but an order follows from it.

#include "ir/Kernel.h"

#include "mlir/IR/IRMapping.h"

namespace costate::conversion {

/// Whether `value` follows from arguments of `body`, what is outside of it, and
/// memory, by at most `left` cheap operations; `left` is reduced. What memory
/// holds only later is no index of another load.
bool isKnownAhead(mlir::Value value, mlir::Region &body, int64_t &left);

/// What `value` is outside of `body`, where the operations that it follows from
/// are copied to; `done`: those of the body that are there.
mlir::Value computeAhead(mlir::Value value, mlir::Region &body,
                         mlir::OpBuilder &b, mlir::IRMapping &done);

} // namespace costate::conversion
