#pragma once
/// How the reverse of one block gets the forward values that it needs.

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

namespace costate::autodiff {

/// The needed values of one forward block, and what is available without the
/// tape: values of enclosing blocks, constants, inverted counters.
struct SaveProblem {
  mlir::Block &block;
  llvm::ArrayRef<mlir::Value> needed;
  llvm::function_ref<bool(mlir::Value)> isAvailable;
};

/// Values that go into the block's record, in program order. Every other needed
/// value is recomputed from these and from what is available.
struct SavePlan {
  llvm::SmallVector<mlir::Value> saved;
};

/// Whether the reverse sweep may recompute `value` from its operands: the
/// operation is pure or a load from memory that the sweeps do not change, has
/// no regions, and does not make a float something that steers control or
/// addresses.
bool isRecomputable(mlir::Value value);

/// Whether `plan` provides every needed value.
bool verifyPlan(const SaveProblem &problem, const SavePlan &plan);

/// Saves what cannot be recomputed; of the rest, what is expensive to recompute
/// or would make the record larger.
SavePlan planSaves(const SaveProblem &problem);

} // namespace costate::autodiff
