#pragma once
/// Loops in the form that differentiation works on.

#include "ir/Kernel.h"

#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

/// Puts the body of a `while` that certainly runs once, as its flags are
/// constants, in its place; whether there was one.
bool inlineLoopsThatRunOnce(mlir::Operation *root);

/// Gives every `scf.for` in `root` the bounds 0 and a trip count, and the
/// step 1.
void normalizeLoops(mlir::Operation *root);

/// Takes the dimensions from the ranges of `root` in which they have one work
/// item, as far as one dimension remains; whether there was one. Work items
/// that print are named by their indices, and keep them.
bool dropUnitDimensions(mlir::Operation *root);

/// Makes every `scf.while` of `kernel` carry the number of its iterations;
/// returns that result, by loop.
llvm::DenseMap<mlir::Operation *, mlir::Value>
countIterations(ir::KernelOp kernel);

/// Replaces integers that change by the same amount in every iteration of a
/// loop by start + iteration * amount, so that the reverse sweep need not save
/// them. The loops must be as the two functions above leave them; `tripCounts`
/// is what countIterations has returned.
void expressInductions(
    ir::KernelOp kernel,
    const llvm::DenseMap<mlir::Operation *, mlir::Value> &tripCounts);

} // namespace costate::autodiff
