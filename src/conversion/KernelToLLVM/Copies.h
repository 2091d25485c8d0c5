#pragma once
/// Elements that a range only adds to: on a CPU, its parts or the threads may
/// have copies of them.

#include "ir/Kernel.h"

#include "llvm/ADT/SmallVector.h"

namespace costate::conversion {

struct CopiedArray {
  mlir::Value array;
  int64_t additions = 0; ///< of a work item; those in a loop count once
  bool isInLoop = false;
};

/// Makes the elements with the first indices that all work items of `range`
/// have in common, such as those of one time step, arrays of their own, if the
/// range only adds to them. In a function.
void sliceCopied(ir::RangeOp range);

/// Marks the additions of `range` to arrays of which it does nothing else with
/// the number of the array (`copyAttr`).
llvm::SmallVector<CopiedArray> markCopied(ir::RangeOp range);

} // namespace costate::conversion
