#pragma once
/// Branches between a work item and what it does.

#include "conversion/PlaceTapes/Passes.h"

namespace costate::conversion {

struct Gate {
  mlir::Value condition;
  bool isOpen; ///< the value of the condition that leads there

  bool operator==(const Gate &) const = default;
};

/// Those around `op` in its range, the outermost one first.
llvm::SmallVector<Gate> gatesOf(mlir::Operation *op);

/// The one behind which all is that work items do to memory, if there is one:
/// those that do not pass have no effect.
std::optional<Gate> effectGateOf(ir::RangeOp range);

} // namespace costate::conversion
