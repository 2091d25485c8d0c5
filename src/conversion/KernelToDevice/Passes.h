#pragma once
/// Kernel IR to functions of a device and host code that drives them; passes
/// are documented in Passes.td.

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace costate::conversion {

/// On a range after the pivot of the kernel.
inline constexpr llvm::StringLiteral afterPivotAttr = "costate.after_pivot";
/// On such a range that needs values of the serial code there before it knows
/// how much it pushes.
inline constexpr llvm::StringLiteral measuredInPlaceAttr =
    "costate.measured_in_place";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/KernelToDevice/Passes.h.inc"

} // namespace costate::conversion
