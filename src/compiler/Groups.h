#pragma once
/// What work items of a block do together, and where that cannot be.

#include "base/Result.h"
#include "compiler/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"

namespace costate::compiler {

/// BadKernel for the first operation of a block or warp that `target` does not
/// have, or that some work items of a block certainly do not come to.
Result<> checkGroups(mlir::ModuleOp module, const std::string &target,
                     DiagnosticText &diagnostics);

} // namespace costate::compiler
