#pragma once
/// Who writes an element? Where work items of a range certainly use elements of
/// their own, nobody asks; elsewhere a gradient finds out before it begins.

#include "autodiff/replay/Accesses.h"

#include "llvm/ADT/DenseSet.h"

namespace costate::autodiff {

/// Arrays that a range writes, and of which the gradient needs what it reads:
/// it may decide, index, or be a factor.
class Steering {
public:
  /// Adds those of the `needed` loads of a kernel; whether there were new ones.
  bool add(llvm::ArrayRef<ir::LoadOp> needed);
  bool contains(ir::RangeOp range, mlir::Value array) const;

private:
  llvm::DenseSet<std::pair<unsigned, unsigned>> places; ///< argument and part
};

/// Puts in front of each range of `gradient` that writes elements of an
/// `active` or steering array, which other work items might use, three ranges
/// that end the launch if they do: one forgets, one notes and one asks who
/// writes an element. They follow the same branches as the range, on the same
/// memory.
void checkOwners(ir::KernelOp gradient, llvm::ArrayRef<bool> active,
                 const Steering &steering);

/// Whether `op` is one of these ranges: they are parts of the range that they
/// stand in front of, and are not reversed.
bool isOwnerCheck(mlir::Operation *op);
void eraseOwnerChecks(ir::KernelOp kernel);

/// The loads of which `load` is a copy if it stands in one of these ranges, or
/// itself.
llvm::SmallVector<ir::LoadOp> copiedLoads(ir::KernelOp kernel, ir::LoadOp load);
void forgetCopies(ir::KernelOp kernel);

} // namespace costate::autodiff
