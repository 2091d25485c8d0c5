#pragma once
/// The pass is documented in Passes.td.

#include "ir/Kernel.h"
#include "ir/Tape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/Reductions/Passes.h.inc"

} // namespace costate::conversion
