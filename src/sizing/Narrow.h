#pragma once
/// Values that lie on a tape in fewer bits than they have elsewhere.

#include "mlir/IR/ValueRange.h"

namespace costate::sizing {

/// A type that holds `value` exactly: that of the narrow numbers (8 or 16 bits)
/// that it comes from, or one of few bits if it has a small bound. Unsigned
/// integers are signless ones that zeros extend; signed ones are `si`.
mlir::Type storedType(mlir::Value value);

llvm::SmallVector<mlir::Type> storedTypes(mlir::ValueRange values);

} // namespace costate::sizing
