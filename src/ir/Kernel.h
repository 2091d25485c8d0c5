#pragma once
/// The kernel dialect; the ops are documented in KernelOps.td.

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace costate::ir::OpTrait {
/// A function of floats that one of the device's functions computes.
template <class Op>
class IsFunction : public mlir::OpTrait::TraitBase<Op, IsFunction> {};
} // namespace costate::ir::OpTrait

#include "ir/KernelDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/KernelTypes.h.inc"

#include "ir/KernelInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/KernelOps.h.inc"

namespace costate::ir {

/// Whether numbers of this type are held by values of a wider one.
bool isNarrow(mlir::Type element);

/// Whether kernels and functions take, and functions return, such values.
bool isScalar(mlir::Type type);

/// Whether `isWanted` holds of an operation in `region`, or of `root` or one in
/// it.
bool contains(mlir::Region &region,
              llvm::function_ref<bool(mlir::Operation *)> isWanted);
bool contains(mlir::Operation *root,
              llvm::function_ref<bool(mlir::Operation *)> isWanted);
template <class... Ops> bool contains(mlir::Operation *root) {
  return contains(root, [](auto *op) { return mlir::isa<Ops...>(op); });
}

/// Whether `op` stores or updates an element of an array.
inline bool writesElement(mlir::Operation *op) {
  return mlir::isa<ElementAccess>(op) && !mlir::isa<LoadOp>(op);
}

/// Whether `op` updates an element and tells what it was.
inline bool fetchesElement(mlir::Operation *op) {
  return mlir::isa<AtomicFetchOp, CompareExchangeOp>(op);
}

/// Whether `op` is one on private arrays.
inline bool isOfLocal(mlir::Operation *op) {
  return mlir::isa<LocalOp, LocalLoadOp, LocalStoreOp, LocalClearOp>(op);
}

/// Whether `op` overwrites elements of a private array that exists already.
inline bool writesLocal(mlir::Operation *op) {
  return mlir::isa<LocalStoreOp, LocalClearOp>(op);
}

/// The private array that `op`, a load or write of one, uses.
inline mlir::Value localOf(mlir::Operation *op) {
  return op->getOperand(mlir::isa<LocalStoreOp>(op) ? 1 : 0);
}

/// Names of argument attributes of derived kernels (see KernelOp).
inline constexpr llvm::StringLiteral adjointOfAttr = "costate.adjoint_of";
inline constexpr llvm::StringLiteral tangentOfAttr = "costate.tangent_of";
inline constexpr llvm::StringLiteral versionOfAttr = "costate.version_of";
inline constexpr llvm::StringLiteral partAttr = "costate.part";
inline constexpr llvm::StringLiteral scratchOfAttr = "costate.scratch_of";
inline constexpr llvm::StringLiteral ownersOfAttr = "costate.owners_of";

/// Whether `array` tells which work items write elements. Several may write to
/// one element of it, whichever is the last.
bool holdsOwners(mlir::Value array);

/// On an argument of which an element that is not 0 stays what it is: where the
/// blocks of sparse arrays lie.
inline constexpr llvm::StringLiteral directoryAttr = "costate.directory";
/// Whether any later content of `array` is as good as the one that a load
/// found. So nobody has to keep it, and atomics that return what it says are
/// not left to chance.
bool isDirectory(mlir::Value array);

/// On an array: its extents as far as they are known, an array of i64, with -1
/// where they are not.
inline constexpr llvm::StringLiteral extentsAttr = "costate.extents";
/// Of an argument of a kernel; empty if nothing is known. Adjoints and tangents
/// have those of their array, unless these are curves in several directions.
std::vector<int64_t> knownExtents(mlir::BlockArgument argument);

/// The index by which neighbours in memory differ, of an access in a kernel:
/// the last one of a dimension that has more than one element for all that is
/// known; null if there is none.
mlir::Value innermostIndex(ElementAccess access);

/// Whether `array` holds adjoints.
bool isAdjoint(mlir::Value array);
/// Adjoints, or the tangents of them.
bool isOfAdjoint(mlir::Value array);

/// What the user calls an argument that is not one of theirs as a whole.
inline constexpr llvm::StringLiteral nameAttr = "costate.name";
/// `argument 3`, or its name.
std::string argumentText(mlir::BlockArgument argument);

/// On an access that the forward sweep of a gradient makes on a scratch array:
/// the number of its part.
inline constexpr llvm::StringLiteral replayedAttr = "costate.replayed";

/// On an access whose element several work items of a range may use: `"load"`,
/// `"store"`, `"shared_store"`, `"update"`, `"minimum"`, `"maximum"`, `"bits"`
/// or `"exchange"`, in terms of the primal.
inline constexpr llvm::StringLiteral watchedAttr = "costate.watched";

/// On a `"shared_store"`: which of the values that are stored at its place in
/// the source; none: the first.
inline constexpr llvm::StringLiteral storedValueAttr = "costate.stored_value";

/// On an `scf.for` or `scf.while` of the primal: from how many checkpoints its
/// gradient runs it again, an i64 above 0.
inline constexpr llvm::StringLiteral checkpointsAttr = "costate.checkpoints";
/// On such a loop of a gradient: it saves all of its iterations all the same.
inline constexpr llvm::StringLiteral wholeAttr = "costate.whole";
/// On the loops of a gradient that such a loop has become. `rerun`: its
/// iterations, segments of the loop, are run again from what they began with.
/// `segment`: the loop over one segment, in it. `rest`: the loop behind it, of
/// which all is saved. Sums over the loop go through all three.
inline constexpr llvm::StringLiteral rerunAttr = "costate.rerun";
inline constexpr llvm::StringLiteral segmentAttr = "costate.segment";
inline constexpr llvm::StringLiteral restAttr = "costate.rest";

/// On a range over the elements that work items of the next range reach.
inline constexpr llvm::StringLiteral gatherAttr = "costate.gather";
/// On an `scf.if`, the only operation of its range with regions: its condition
/// is a conjunction of bounds of the indices.
inline constexpr llvm::StringLiteral interiorAttr = "costate.interior";

} // namespace costate::ir
