#pragma once
/// How a kernel touches its arrays.

#include "autodiff/replay/Affine.h"
#include "base/ArraySection.h"
#include "ir/Kernel.h"

#include "llvm/ADT/DenseSet.h"

namespace costate::autodiff {

/// One load, store or atomic update.
struct ArrayAccess {
  mlir::Operation *op;
  mlir::Value array;
  mlir::OperandRange indices;

  bool isLoad() const { return mlir::isa<ir::LoadOp>(op); }
  bool isWrite() const { return !isLoad(); }
  /// Makes it one of `other`.
  void redirect(mlir::Value other) const;
};

/// The number of an argument.
inline unsigned argumentOf(mlir::Value array) {
  return mlir::cast<mlir::BlockArgument>(array).getArgNumber();
}

/// The integer `attribute` of `op`, if it has one.
std::optional<int64_t> integerOf(mlir::Operation *op,
                                 llvm::StringRef attribute);

/// Appends an array that belongs to `array`, an argument: `attribute` of it is
/// the number of that.
mlir::BlockArgument appendArray(ir::KernelOp kernel, mlir::Value array,
                                mlir::Type type, llvm::StringRef attribute);

/// A copy of `kernel` behind it, with `suffix` after its name.
ir::KernelOp copyOf(ir::KernelOp kernel, llvm::StringRef suffix);

/// Whether `op` takes a minimum or maximum with an element.
inline bool isExtremum(mlir::Operation *op) {
  return mlir::isa<ir::AtomicMinOp, ir::AtomicMaxOp>(op);
}

/// Whether `op` is an atomic update.
inline bool isUpdate(mlir::Operation *op) {
  return mlir::isa<ir::AtomicAddOp>(op) || isExtremum(op) ||
         ir::fetchesElement(op);
}

/// Whether no other work item touches the element of the update `op`.
inline bool isExclusive(mlir::Operation *op) {
  return op->hasAttr("exclusive");
}

/// The access that `op` makes, if it makes one.
std::optional<ArrayAccess> accessOf(mlir::Operation *op);

/// Whether two accesses to one array are to one element.
enum class Relation { Same, Apart, Unknown };

/// For values of the indices at one time.
Relation relate(mlir::OperandRange one, mlir::OperandRange other);

/// All accesses under `op`, in program order.
llvm::SmallVector<ArrayAccess> accessesIn(mlir::Operation *op);

/// The same by array.
llvm::MapVector<mlir::Value, llvm::SmallVector<ArrayAccess>>
accessesByArray(mlir::Operation *op);

/// Whether `value` belongs to the serial code of a kernel, outside of loops and
/// branches: it is the same during the whole launch.
bool isSerialValue(mlir::Value value);

/// Whether there are ranges in `op`.
bool holdsRanges(mlir::Operation *op);

/// Whether `op` is a range, or a loop or branch around ranges.
inline bool isOwnPart(mlir::Operation *op) {
  return mlir::isa<ir::RangeOp>(op) || holdsRanges(op);
}

/// Whether all work items of `range` have `value` in common.
bool isUniform(mlir::Value value, ir::RangeOp range);

/// Whether `extent` is certainly no more than 1.
bool isAtMostOne(mlir::Value extent);

/// Whether each work item of `range` makes `accesses`, to one array, to
/// elements that no other work item touches by them: for every index of the
/// range there is a dimension in which all use the same multiple of that index
/// plus constants that differ by less than the multiple.
bool areExclusive(ir::RangeOp range, llvm::ArrayRef<ArrayAccess> accesses);

/// The arrays of which each work item of `range` touches elements that no other
/// work item touches.
llvm::DenseSet<mlir::Value> exclusiveArrays(ir::RangeOp range);

/// Sets `exclusive` on the updates of `kernel` that need not be atomic.
void markExclusive(ir::KernelOp kernel);

/// Adds the element of `access` to `section`, which is nothing at first.
void widen(std::optional<ArraySection> &section, const ArrayAccess &access);
/// The same, where no element is a section as well.
std::vector<ArraySection>
complete(llvm::ArrayRef<std::optional<ArraySection>> sections);

} // namespace costate::autodiff
