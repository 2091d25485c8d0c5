#pragma once
/// What a loop carries from one iteration to the next, and how much of it a
/// checkpoint holds.

#include "conversion/PlaceTapes/Shape.h"

namespace costate::conversion {

/// One of the values of a record.
struct RecordField {
  int64_t record;
  unsigned number;
};

/// A loop of the forward sweep, seen as iterations that take values and leave
/// values.
class LoopState {
public:
  LoopState(const TapeShape &shape, mlir::Operation *loop);

  mlir::Operation *op() const { return loop; }
  bool isCounted() const { return mlir::isa<mlir::scf::ForOp>(loop); }
  mlir::ValueRange inits() const { return like().getInits(); }
  /// What stands for the state in an iteration.
  mlir::ValueRange arguments() const { return like().getRegionIterArgs(); }
  /// What an iteration leaves.
  mlir::ValueRange yields() const { return like().getYieldedValues(); }

  /// Of each value: records follow from it, so a checkpoint holds it.
  bool isNeeded(unsigned k) const { return needed[k]; }
  /// Of each value: what it gains in every iteration, if that is a constant.
  std::optional<int64_t> gain(unsigned k) const { return gains[k]; }
  bool isInCheckpoint(unsigned k) const { return needed[k] && !gains[k]; }
  llvm::SmallVector<mlir::Type> checkpoint() const;
  int64_t checkpointRows() const;
  /// Of its values, without elements.
  unsigned checkpointValues() const;
  /// Private arrays from outside of it that it loads from, and that it or what
  /// runs after it writes: a checkpoint holds their elements, after the values.
  mlir::ArrayRef<mlir::Value> locals() const { return carriedLocals; }
  int64_t localRows() const;
  bool writesLocals() const { return changesLocals; }
  /// Where each iteration of a leaf records what a checkpoint in front of it
  /// holds; none: not all of that.
  std::optional<llvm::SmallVector<RecordField>>
  recorded(const TapeShape &shape) const;

  /// From how many checkpoints the user wants it to run again; 0: nobody asks.
  int64_t checkpoints() const;

  /// Whether the rows of its iterations are known without computing much.
  bool isSized() const { return sized; }

private:
  mlir::LoopLikeOpInterface like() const {
    return mlir::cast<mlir::LoopLikeOpInterface>(loop);
  }
  void findLocals();
  void findNeeds(const TapeShape &shape);
  void findGains();
  void findSize(const TapeShape &shape);
  /// Adds what `value` follows from, within an iteration and from one iteration
  /// to the next.
  void trace(mlir::Value value, llvm::DenseSet<mlir::Operation *> &ops,
             llvm::SmallVectorImpl<bool> &state) const;

  mlir::Operation *loop;
  llvm::SmallVector<bool> needed;
  llvm::SmallVector<std::optional<int64_t>> gains;
  llvm::SmallVector<mlir::Value> carriedLocals;
  bool sized = false, changesLocals = false;
};

} // namespace costate::conversion
