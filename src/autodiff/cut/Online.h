#pragma once
/// Loops of unknown length that are cut as they run.

#include "autodiff/cut/Segments.h"
#include "autodiff/rules/Rules.h"

namespace costate::autodiff {

/// On a loop that runs the iterations of a segment, or fewer if there are no
/// more, in the forward sweep: the reverse sweep knows how many those were, and
/// runs the loop behind it in its place.
inline constexpr llvm::StringLiteral aheadAttr = "costate.ahead";

/// What a `while` becomes.
struct OnlineParts {
  mlir::scf::WhileOp segments; ///< marked `costate.rerun`
  mlir::scf::ForOp segment;    ///< null: nothing has changed
  mlir::scf::WhileOp ahead;    ///< in front of it
};

/// How long a segment is. Both emit what computes that.
struct OnlineLimits {
  /// How many iterations the segment of a number has at most.
  llvm::function_ref<mlir::Value(Builder &, mlir::Value)> lengthOf;
  /// In front of each of its iterations, whether there is room for that; null:
  /// there is.
  llvm::function_ref<mlir::Value(Builder &)> hasRoom = nullptr;
};

/// Makes of `loop` one over segments. Not if what comes before the condition of
/// `loop` does more than compute.
OnlineParts cutOnline(mlir::scf::WhileOp loop, TripCounts &tripCounts,
                      OnlineLimits limits);

/// Makes a `while` of `loop`, which counts from 0 by 1.
mlir::scf::WhileOp openLoop(mlir::scf::ForOp loop, TripCounts &tripCounts);

/// Erases from the forward sweep what runs there in loops ahead.
void keepAhead(mlir::Operation *root);

} // namespace costate::autodiff
