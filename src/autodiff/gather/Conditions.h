#pragma once
/// Conditions of branches that hold in a box of work items.

#include "autodiff/gather/Reach.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace costate::autodiff {

/// Conditions whose answer is known for all work items of a box.
struct Box {
  std::vector<Bounds> sides; ///< by index of the range
  llvm::DenseMap<mlir::Value, bool> answers;

  using Accepts =
      llvm::function_ref<bool(mlir::Value condition, const Steps &)>;

  /// Outside of the box, work items have another answer to `condition` than
  /// `answer`. False if no box tells, or it is not accepted; part of a
  /// conjunction may be added.
  bool add(StepAnalysis &analysis, ir::RangeOp range, mlir::Value condition,
           bool answer, Accepts accepts);
};

/// Makes choices between integers selections, and conjunctions of what stands
/// in branches: `i > 0 and i < n` is one condition then.
void flattenChoices(ir::RangeOp range);

/// A range whose work items do nothing unless conditions on their indices hold
/// goes over those for which they do.
void narrow(ir::RangeOp range);

/// `form`, with `item` in the place of `index`.
mlir::Value emit(Builder &b, const Affine &form, mlir::Value index = {},
                 mlir::Value item = {});

} // namespace costate::autodiff
