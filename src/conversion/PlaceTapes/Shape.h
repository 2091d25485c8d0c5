#pragma once
/// How the records of a range nest.

#include "conversion/PlaceTapes/Passes.h"
#include "ir/LoopPairs.h"

#include "llvm/ADT/DenseSet.h"

namespace costate::conversion {

/// Records of straight code between two loops that push.
struct RecordGroup {
  llvm::SmallVector<int64_t> records;
  int64_t rows = 0;
};

/// A work item, or one iteration of a loop: what it pushes itself, around the
/// loops in it that push.
struct TapeLevel {
  llvm::SmallVector<RecordGroup> groups; ///< one more than loops
  llvm::SmallVector<mlir::Operation *> loops;

  bool isLeaf() const { return loops.empty(); }
  /// Of a leaf.
  int64_t rows() const { return groups.front().rows; }
};

/// The forward sweep stands before `pivot`, the reverse sweep after it. Each
/// loop that pushes is undone by one that pops the same records; groups of
/// records come back in the opposite order.
class TapeShape {
public:
  /// None: the range pushes nothing; or `obstacle` says why it cannot.
  static std::optional<TapeShape> of(ir::RangeOp range,
                                     llvm::StringRef &obstacle);

  mlir::Block *body() const { return pivot->getBlock(); }
  /// Whether a record is pushed or popped in `op`.
  bool isOnTape(mlir::Operation *op) const { return touching.contains(op); }
  /// A `for` or `while` that pushes or pops.
  bool isLoop(mlir::Operation *op) const { return loopOps.contains(op); }
  bool containsLoop(mlir::Operation *op) const { return around.contains(op); }
  llvm::SmallVector<mlir::Operation *> forwardLoops() const {
    return llvm::to_vector(llvm::make_second_range(partners));
  }
  /// The loop that `reversed` undoes.
  mlir::Operation *forwardOf(mlir::Operation *reversed) const {
    return partners.lookup(reversed);
  }
  /// Of a loop of the forward sweep; null: of the work item.
  const TapeLevel &level(mlir::Operation *loop) const {
    return levels.find(loop)->second;
  }
  /// The place of its push in the forward sweep, from 1 on.
  unsigned placeOf(int64_t record) const { return places.lookup(record); }
  /// The row of a record in its group.
  int64_t rowOf(int64_t record) const { return rows.lookup(record); }
  mlir::TypeRange typesOf(int64_t record) const {
    tape::PopOp pop = records.find(record)->second.pop;
    return pop.getResultTypes();
  }

  tape::PushOp pushOf(int64_t record) const {
    return records.find(record)->second.push;
  }

  tape::PivotOp pivot;

private:
  llvm::StringRef obstacleIn(ir::RangeOp range);
  bool isForward(mlir::Operation *op);
  bool enter(mlir::Operation *op, const tape::LoopPairs &pairs);
  TapeLevel levelOf(mlir::Block::iterator first, mlir::Block::iterator last);
  void add(mlir::Block::iterator first, mlir::Block::iterator last,
           TapeLevel &level);

  llvm::DenseMap<int64_t, tape::Record> records;
  llvm::DenseSet<mlir::Operation *> touching, loopOps, around;
  llvm::MapVector<mlir::Operation *, mlir::Operation *> partners;
  llvm::DenseMap<mlir::Operation *, TapeLevel> levels;
  llvm::DenseMap<int64_t, int64_t> rows;
  llvm::DenseMap<int64_t, unsigned> places;
};

} // namespace costate::conversion
