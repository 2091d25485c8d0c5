#pragma once
/// Can the values that a reverse sweep needs be loaded from memory as the
/// launch left it?

#include "autodiff/Differentiate.h"
#include "autodiff/replay/Accesses.h"

namespace costate::autodiff {

/// Refuses what no replay can get right, because it depends on the order of
/// iterations: a plain read of an array that the same range updates
/// atomically, an element that several iterations certainly store, an element
/// that one iteration certainly stores and the next one uses.
mlir::LogicalResult checkOrderFree(ir::KernelOp primal, Refusal &refusal);

/// Final-state replay: for each needed load, no store or update that can follow
/// it, in its own iteration or in a later part, may hit its element. Reports
/// the first pair that breaks this. `needed` are loads of `primal`, whose loops
/// are in the form of expressInductions.
mlir::LogicalResult checkFinalState(ir::KernelOp primal,
                                    llvm::ArrayRef<ir::LoadOp> needed,
                                    Refusal &refusal);

/// Marks the accesses of ranges whose elements several iterations may use in
/// ways that exclude each other (see the pass `watch-accesses`).
void watchAccesses(ir::KernelOp kernel);

/// Whether `load` may read an element that a store or update of the same
/// kernel leaves there.
bool readsOwnStore(ir::KernelOp primal, ir::LoadOp load);

} // namespace costate::autodiff
