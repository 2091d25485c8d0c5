#pragma once
/// The counting slice: what of the forward sweeps decides how much is pushed.

#include "conversion/KernelToLLVM/Outline.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace costate::conversion {

/// Whether `part`, a range or serial code, belongs to the reverse sweep.
bool isAfterPivot(mlir::Operation *part);
/// Whether it pushes in a forward sweep.
bool pushesForward(mlir::Operation *part);

/// Of some ranges and serial code. What is around them is there already.
class CountingSlice {
public:
  explicit CountingSlice(mlir::ArrayRef<mlir::Operation *> parts);

  /// What decides how often `part` pushes in its forward sweep.
  void addPushes(mlir::Operation *part);
  /// What `result` of one of the parts follows from.
  void addResult(mlir::Value result);

  /// Whether something outside of `part` needs what `part` computes.
  bool isNeeded(mlir::Operation *part) const { return needed.contains(part); }
  /// Whether sweeps overwrite what it reads.
  bool readsWritten() const { return overwritten; }
  /// A part that it would need, which a launch that only counts leaves out:
  /// one of the reverse sweep, or one that writes what outlives the launch.
  mlir::Operation *obstacle() const { return leftOut; }
  /// Parameters of the kernel whose elements it reads.
  llvm::ArrayRef<int64_t> reads() const { return parameters.getArrayRef(); }
  /// Slots of the arguments that it follows from, unless perhaps from all.
  llvm::ArrayRef<int64_t> arguments() const { return slots.getArrayRef(); }
  bool usesAllArguments() const { return usesAllSlots; }

  /// A copy of the forward sweep of `part`, in front of it, without all that
  /// the slice does without.
  mlir::Operation *cut(mlir::Operation *part) const;

private:
  mlir::Operation *partOf(mlir::Operation *op) const;
  void want(mlir::Value value);
  void want(mlir::Operation *op);
  void wantWorkItems(mlir::Operation *part);
  void wantAll(mlir::Region &region);
  void close();
  void follow(mlir::Value value);
  void followArgument(mlir::BlockArgument argument);
  void followOutside(mlir::Operation *op);
  void followResult(mlir::Operation *part, unsigned number);
  void follow(mlir::Operation *op);
  void followMemory(mlir::Value memory);
  void followWrite(mlir::Operation *write, mlir::Value memory);
  bool isForward(mlir::Operation *op, mlir::Operation *part) const;
  bool keeps(mlir::Operation *op, mlir::Operation *part) const;
  void useZeros(mlir::Operation *op, mlir::Operation *copy) const;

  llvm::SmallPtrSet<mlir::Operation *, 8> parts, needed;
  /// What follows the forward sweeps.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> ends;
  llvm::DenseSet<mlir::Value> values, memories;
  llvm::DenseSet<mlir::Operation *> operations;
  mlir::SmallVector<mlir::Value> nextValues;
  mlir::SmallVector<mlir::Operation *> nextOperations;
  llvm::SmallSetVector<int64_t, 8> parameters, slots;
  bool usesAllSlots = false;
  bool overwritten = false;
  mlir::Operation *leftOut = nullptr;
};

} // namespace costate::conversion
