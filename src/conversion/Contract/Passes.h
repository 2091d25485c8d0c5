#pragma once
/// Contraction of kernel IR; the passes are documented in Passes.td.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/Contract/Passes.h.inc"

} // namespace costate::conversion
