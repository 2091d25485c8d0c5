#pragma once
/// Which functions are called.

#include "base/Calls.h"
#include "ir/Kernel.h"

#include "mlir/IR/BuiltinOps.h"

namespace costate::compiler {

/// Leaves calls in `module`, a kernel and functions that it calls, where they
/// pay and change nothing but the time of compilation; others become part of
/// the kernel. `inlined` is that kernel without any. Returns whether any is
/// left.
bool keepCalls(mlir::ModuleOp module, ir::KernelOp inlined, Calls calls);

} // namespace costate::compiler
