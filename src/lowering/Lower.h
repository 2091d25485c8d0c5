#pragma once
/// From the statement tree to kernel IR.

#include "base/Result.h"
#include "ir/Kernel.h"
#include "syntax/Syntax.h"

#include "mlir/IR/BuiltinOps.h"

namespace costate::lowering {

/// Appends `kernel` to `module` as a verified KernelOp, after the functions
/// that it calls: BREAK, CONTINUE and
/// RETURN as flags, variables in SSA form, loops normalised to
/// `scf.for %k = 0 to trip_count step 1`. Fails with BadKernel and a text that
/// names the user's line. With `debug`, integers that overflow are reported.
/// The dialects of ir::registerDialects must be loaded.
Result<ir::KernelOp> lower(const syntax::Kernel &kernel, mlir::ModuleOp module,
                           bool debug = false);

} // namespace costate::lowering
