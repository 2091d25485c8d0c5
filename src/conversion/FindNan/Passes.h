#pragma once
/// The search for inf and NaN; the passes are documented in Passes.td.

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/FindNan/Passes.h.inc"

} // namespace costate::conversion
