#pragma once
/// Loops of unknown length that are cut as they run.

#include "autodiff/cut/Segments.h"

namespace costate::autodiff {

/// On a loop that runs the iterations of a segment, or fewer if there are no
/// more, in the forward sweep: the reverse sweep knows how many those were, and
/// runs the loop behind it in its place.
inline constexpr llvm::StringLiteral aheadAttr = "costate.ahead";

/// What a `while` becomes.
struct OnlineParts {
  mlir::scf::WhileOp segments; ///< marked `costate.rerun`
  mlir::scf::ForOp segment;    ///< null: nothing has changed
};

/// Makes of `loop` one over segments. `lengthOf` tells how many iterations the
/// segment of a number has at most; it emits what computes that. Not if what
/// comes before the condition of `loop` does more than compute.
OnlineParts cutOnline(
    mlir::scf::WhileOp loop, TripCounts &tripCounts,
    llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::Value)>
        lengthOf);

/// Erases from the forward sweep what runs there in loops ahead.
void keepAhead(mlir::Operation *root);

} // namespace costate::autodiff
