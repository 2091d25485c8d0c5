#pragma once
/// What a kernel may not do on a target; and what work items of a block cannot
/// do together anywhere.

#include "base/Result.h"
#include "compiler/Diagnostics.h"
#include "compiler/targets/TargetBackend.h"

#include "mlir/IR/BuiltinOps.h"

namespace costate::compiler {

/// For messages: of an operation of a block or warp, or of a shared array.
std::string groupName(mlir::Operation *op);

/// BadKernel for the first operation that `target` does not have, or that some
/// work items of a block certainly do not come to.
Result<> checkOperations(mlir::ModuleOp module, const TargetBackend &target,
                         DiagnosticText &diagnostics);

} // namespace costate::compiler
