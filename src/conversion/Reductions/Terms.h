#pragma once
/// Additions to adjoints, and those that are made once, after what repeats
/// them.

#include "ir/Kernel.h"

namespace costate::conversion {

/// Whether only branches stand between `op` and `around`.
bool isInBranchesOf(mlir::Operation *op, mlir::Operation *around);

/// What `add` adds in one iteration or work item of `around`, as a value there:
/// 0 where a branch leaves it out. Between them stand only branches, which get
/// another result.
mlir::Value valueIn(ir::AtomicAddOp add, mlir::Operation *around);

/// Adds `sum` to the element of `add` after `op`, if it is not 0: perhaps
/// nothing has come to the element, and it is not there. Returns that addition.
ir::AtomicAddOp addAfter(mlir::Operation *op, ir::AtomicAddOp add,
                         mlir::Value sum);

} // namespace costate::conversion
