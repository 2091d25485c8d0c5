#pragma once
/// Can the values that a reverse sweep needs be loaded from memory as the
/// launch left it?

#include "autodiff/Differentiate.h"
#include "autodiff/replay/Accesses.h"

namespace costate::autodiff {

/// Refuses what no replay can get right, because it depends on the order of
/// work items: a plain read of an array that the same range updates
/// atomically, unless they may have elements of their own, an element that
/// several work items certainly store, an element that one work item certainly
/// stores and the next one uses.
mlir::LogicalResult checkOrderFree(ir::KernelOp primal,
                                   llvm::ArrayRef<bool> active,
                                   Refusal &refusal);

/// A kernel is a list of parts: serial runs have even numbers, ranges and loops
/// and branches around ranges odd ones; there is a serial run, perhaps empty,
/// before each of these and at the end.
unsigned partNumber(mlir::Operation *op);

/// The operation directly in the kernel's block that contains `op`.
mlir::Operation *statementOf(mlir::Operation *op);

/// Whether two operations stand in one range or one serial run. Loops and
/// branches around ranges consist of parts, too.
bool samePart(mlir::Operation *a, mlir::Operation *b);

/// Whether `value` is the same in one execution of a part that uses it.
bool isFixedInPart(mlir::Value value);

/// Whether two accesses certainly differ in a dimension, by symbols that do not
/// change during the launch or the common work item.
bool certainlyApart(const ArrayAccess &a, const ArrayAccess &b,
                    llvm::function_ref<bool(mlir::Value)> isFixed);

/// The writes of a kernel by array. Loops are in the form of expressInductions.
using Writes = llvm::DenseMap<mlir::Value, llvm::SmallVector<ArrayAccess>>;
Writes writesOf(ir::KernelOp kernel);

/// Final-state replay needs that no store or update that can follow `load`, in
/// its own work item or in a later part, may hit its element: the first one
/// that may.
std::optional<Overwrite> findOverwrite(const Writes &writes, ir::LoadOp load);

/// Whether an element of `array` may be written after it has been written, by
/// its own work item or in a later part.
bool mayWriteAgain(const Writes &writes, mlir::Value array);

/// Whether `load` may read what has been written before by its own work item
/// or serial run; around ranges, by its own loop or branch.
bool mayFollowOwnWrite(const Writes &writes, ir::LoadOp load);

/// Whether `load` reads what its part leaves in the element: what a minimum or
/// maximum that the part takes has become.
inline constexpr llvm::StringLiteral afterPartAttr = "costate.after_part";
inline bool readsAfterPart(mlir::Operation *load) {
  return load->hasAttr(afterPartAttr);
}

/// Whether `other` may use the element of the minimum or maximum `update`
/// otherwise, in the same part.
bool disturbsExtremum(const ArrayAccess &update, const ArrayAccess &other);

/// Refuses minima and maxima of elements of `active` arrays that are used
/// otherwise in the same part: their gradient goes to the values that are
/// equal to what the part leaves.
mlir::LogicalResult checkExtrema(ir::KernelOp primal,
                                 llvm::ArrayRef<bool> active, Refusal &refusal);

/// Puts after each minimum and maximum that an element of an `active` array
/// takes a load that reads after the part.
void probeExtrema(ir::KernelOp kernel, llvm::ArrayRef<bool> active);

/// Marks the accesses of ranges whose elements several work items may use in
/// ways that exclude each other (see the pass `watch-accesses`).
void watchAccesses(ir::KernelOp kernel);

/// Whether `load` may read an element that a store or update of the same
/// kernel leaves there.
bool readsOwnStore(const Writes &writes, ir::LoadOp load);

} // namespace costate::autodiff
