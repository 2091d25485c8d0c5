#pragma once
/// How a loop becomes one over its segments and one over the rest.

#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

using TripCounts = llvm::DenseMap<mlir::Operation *, mlir::Value>;

/// How the first `covered` ones of all `iterations` of a loop are divided: into
/// segments of `length`, of which the last ones may be shorter, or empty, if
/// `isUneven`. The others are the `rest`; null: there are none.
struct Segments {
  mlir::Value count, length, iterations, covered, rest;
  bool isUneven = true;
};

/// What a loop becomes: a loop over segments, in it one over the iterations of
/// a segment, and one over the rest behind it.
struct Parts {
  mlir::scf::ForOp segments, segment, rest;
};

/// Cuts a loop with the bounds 0 and a trip count, and the step 1, and keeps
/// `tripCounts` (see countIterations) right. The plan tells the schedule.
Parts cutInto(const Segments &segments, mlir::scf::ForOp loop,
              TripCounts &tripCounts);

/// Divides such a loop, a segment, once more, without a rest.
/// Returns the loop over the iterations of a smaller segment.
mlir::scf::ForOp divideInto(const Segments &segments, mlir::scf::ForOp segment);

/// A loop over the elements of a private array.
mlir::scf::ForOp
forElements(mlir::Value local, Builder &b,
            llvm::function_ref<void(Builder &, mlir::Value index)> body);

/// The private arrays from outside of `body` that it loads from, in the order
/// of their first loads: those that it changes, or the others.
Values localsOf(mlir::Block &body, bool changed);

} // namespace costate::autodiff
