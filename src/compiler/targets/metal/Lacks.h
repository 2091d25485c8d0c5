#pragma once
/// What kernels ask for that Apple's GPUs lack.

#include "base/MetalChip.h"
#include "compiler/targets/TargetBackend.h"

namespace costate::compiler {

/// f64 of the user that `op` works on, where there is none.
std::optional<Fault> lackOf(mlir::Operation *op, const MetalFeatures &has);

} // namespace costate::compiler
