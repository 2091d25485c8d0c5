#pragma once
/// Work items of a range as lanes of vectors; the pass is documented in
/// Passes.td.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/Lanes/Passes.h.inc"

} // namespace costate::conversion
