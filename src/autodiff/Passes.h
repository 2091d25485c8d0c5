#pragma once
/// The passes of this layer; documented in Passes.td.

#include "ir/Kernel.h"
#include "ir/Tape.h"
#include "sizing/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace costate::autodiff {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "autodiff/Passes.h.inc"

} // namespace costate::autodiff
