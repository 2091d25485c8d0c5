#pragma once
/// What iterations will save when they run again, added up as they run.

#include "autodiff/cut/Sizes.h"

namespace costate::autodiff {

/// Two numbers in a private array: bytes so far, and in front of the last
/// iteration.
class Tally {
public:
  /// Starts with 0.
  explicit Tally(Builder &b);

  /// Whether that can be told of `loop`: nothing in front of a condition saves
  /// in loops, and no loop in it runs again.
  static bool canTell(mlir::Operation *loop);

  /// Adds what an iteration saves, `body` of the loop of this number, with the
  /// loops in it but for those that `adds` has added.
  void addIteration(mlir::Block &body, int64_t number,
                    llvm::function_ref<bool(mlir::Operation *)> adds) const;
  void add(Builder &b, Number bytes) const;
  /// Whether another iteration as large as the last one fits into `room`.
  mlir::Value hasRoom(Builder &b, mlir::Value room) const;
  mlir::Value bytes(Builder &b) const;

private:
  void addWhole(mlir::Operation *loop) const;
  mlir::Value load(Builder &b, int64_t which) const;
  void store(Builder &b, mlir::Value value, int64_t which) const;

  mlir::Value numbers;
};

} // namespace costate::autodiff
