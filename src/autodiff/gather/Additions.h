#pragma once
/// What is gathered.

#include "autodiff/gather/Reach.h"
#include "autodiff/gather/Slice.h"

namespace costate::autodiff {

/// An addition whose element says which work items may have made it.
struct Addition {
  ir::AtomicAddOp op;
  mlir::Value array;
  mlir::OperandRange indices;
  std::vector<Reach> reaches; ///< by index of the range
  Slice slice;

  bool isPlain() const {
    return llvm::all_of(reaches, [](const Reach &reach) {
      return reach.steps->all.size() == 1;
    });
  }
};

/// Which element of an array a work item of the new range adds to: those of
/// equal frames are added up first.
bool sameFrame(const Addition &a, const Addition &b);

/// Additions of one shift: of an element, one work item makes them all.
struct Together {
  llvm::SmallVector<Affine> shifts;
  llvm::SmallVector<ir::AtomicAddOp> additions;
  Slice slice;
};

/// What a work item at some distance from the element has for it.
struct Contribution {
  mlir::Operation *add;
  Term term;
  llvm::SmallVector<Affine> shifts;
  size_t number; ///< of the addition, in the order of the program
};

std::vector<Together> byShift(llvm::ArrayRef<Addition> additions,
                              ir::RangeOp range);

/// Whether work items save records.
bool pushes(ir::RangeOp range);

/// The additions of `range` that can be gathered.
std::vector<Addition> additionsOf(ir::RangeOp range, StepAnalysis &analysis);

} // namespace costate::autodiff
