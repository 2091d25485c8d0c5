#pragma once
/// In which order the lanes of a row come to the records of the tape.

#include "conversion/Lanes/Shapes.h"
#include "ir/Tape.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"

namespace costate::conversion {

/// All lanes share one tape, so that records must come off it in the opposite
/// order, also those of different sides of a branch. Follows the row from the
/// beginning to the end, through each loop once and through both sides of
/// branches: first through the one whose record is on top of the tape.
class TapeOrder {
public:
  TapeOrder(mlir::scf::ForOp row, const Shapes &shapes);

  /// Whether each record is on top when it is popped.
  bool isOpposite() const { return opposite; }
  /// Whether lanes take the second side of `branch` first.
  bool startsWithElse(mlir::scf::IfOp branch) const {
    return elseFirst.contains(branch);
  }

private:
  void visit(mlir::Region &region);
  void visit(mlir::Operation *op);
  void visitIf(mlir::scf::IfOp branch);
  void take(int64_t number);
  /// How many records are on the tape up to the last one that `region` pops.
  size_t heightOf(mlir::Region &region) const;
  bool areApart(const tape::Record &a, const tape::Record &b) const;

  const Shapes &shapes;
  llvm::DenseMap<int64_t, tape::Record> records;
  llvm::SmallVector<int64_t> tape;
  llvm::SmallPtrSet<mlir::Operation *, 4> elseFirst;
  bool opposite = true;
};

} // namespace costate::conversion
