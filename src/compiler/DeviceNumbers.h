#pragma once
/// Numbers that a device lacks.

#include "base/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace costate::compiler {

class DiagnosticText;

/// Refuses `module` at the first operation on numbers that the device `target`
/// of Vulkan does not have; all other devices have all.
Result<> checkNumbers(mlir::ModuleOp module, const std::string &target,
                      DiagnosticText &diagnostics);

} // namespace costate::compiler
