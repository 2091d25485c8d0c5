#pragma once
/// Loops of unknown length that are counted before they run.

#include "autodiff/rules/Rules.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

/// On a loop that only counts, or prepares that: it has no derivative.
inline constexpr llvm::StringLiteral countsAttr = "costate.counts";

/// Whether what comes before the condition of `loop` may run once more, and has
/// no reverse: it passes floats on as they are.
bool onlyComputes(mlir::scf::WhileOp loop);

/// Puts a copy of what comes before the condition of `loop` where `b` stands,
/// for these arguments; the values that it passes on.
Values evaluateBefore(mlir::scf::WhileOp loop, mlir::ValueRange arguments,
                      Builder &b);

/// Makes of `loop`, which stays without its body, one of `count` iterations
/// where `b` stands. It carries what `loop` does, but for the number of the
/// iteration: the first one has the number `first`, or 0 if that is null.
mlir::scf::ForOp takeBody(mlir::scf::WhileOp loop, mlir::Value count,
                          mlir::Value first, mlir::ValueRange inits,
                          Builder &b);

/// Puts in front of `loop` a copy that only counts its iterations, and makes of
/// `loop` one of that many; null, with nothing changed, if what comes before
/// its condition does more than compute. For `tripCounts` see countIterations.
mlir::scf::ForOp
countFirst(mlir::scf::WhileOp loop,
           llvm::DenseMap<mlir::Operation *, mlir::Value> &tripCounts);

} // namespace costate::autodiff
