#pragma once
/// Rows whose work items have loops of different length. Lanes that are equally
/// long, or nearly, do not wait for each other: so work items are taken in the
/// order of their lengths, block by block.

#include "conversion/Lanes/LaneBuilder.h"
#include "conversion/Lanes/Shapes.h"

namespace costate::conversion {

class Lengths {
public:
  /// Those that are known before the work items run; none if their order
  /// matters, or if neighbours read side by side in the loops.
  Lengths(mlir::scf::ForOp row, const Shapes &shapes);

  bool areKnown() const { return !bounds.empty(); }
  /// The loops that have them.
  llvm::ArrayRef<mlir::scf::ForOp> loops() const { return known; }

  /// Whether lanes would wait for more than `idle` iterations of others, as
  /// far as two vectors tell; not for fewer work items.
  mlir::Value differ(LaneBuilder &b, unsigned idle);
  /// The places of the `count` work items from `begin` on, counted from there,
  /// the longest first.
  mlir::Value order(LaneBuilder &b, mlir::Value begin, mlir::Value count);
  /// Those of the lanes from number `first` in that order on.
  static mlir::Value placesOf(LaneBuilder &b, mlir::Value places,
                              mlir::Value first);

private:
  bool mayMove();
  bool readsSideBySide(const Shapes &shapes);
  mlir::Value memory(LaneBuilder &b, mlir::Type type);
  /// Writes those of the `count` work items from `first` on.
  void write(LaneBuilder &b, mlir::Value first, mlir::Value count,
             mlir::Value lengths);

  mlir::scf::ForOp row;
  llvm::SmallVector<mlir::scf::ForOp> known;
  llvm::SmallVector<mlir::Value> bounds;
};

} // namespace costate::conversion
