#pragma once
/// Arrays that a range only adds to: the threads of a CPU may have copies of
/// those that are small.

#include "ir/Kernel.h"

#include "llvm/ADT/SetVector.h"

namespace costate::conversion {

struct CopiedArray {
  mlir::Value array;
  bool isInLoop; ///< a work item adds to several elements
};

/// Marks the additions of `range` to such arrays with the number of the array
/// (`copyAttr`).
llvm::SmallVector<CopiedArray> markCopied(ir::RangeOp range);

} // namespace costate::conversion
