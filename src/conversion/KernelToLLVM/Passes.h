#pragma once
/// Kernel IR to the LLVM dialect for a CPU; passes are documented in Passes.td.

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/KernelToLLVM/Passes.h.inc"

} // namespace costate::conversion
