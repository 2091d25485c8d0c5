#pragma once
/// Random kernels.

#include "fuzz/Memory.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace costate::fuzz {

/// A kernel and what it is launched on.
struct Case {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ir::KernelOp kernel;
  Memory memory;
  bool isSingular = false; ///< derivatives may be infinite
};

/// The kernel of `seed`: valid, with indices inside of its arrays, and with few
/// races and few large values. Much of what the front end never writes occurs:
/// any step of a loop, `while` conditions that compute, permuted results.
Case generate(mlir::MLIRContext &context, uint64_t seed);

} // namespace costate::fuzz
