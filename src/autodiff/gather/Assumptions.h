#pragma once
/// What must hold of extents before a range may take a short way.

#include "autodiff/replay/Affine.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// Those of `forms`, which must not be negative, about which a run has to be
/// asked; nothing if one is certainly negative, or the host cannot tell.
std::optional<llvm::SmallVector<Affine>>
undecided(llvm::ArrayRef<Affine> forms);

/// if all of `forms` hold { range } else { a copy of it }
/// The copy is marked: it is for what rarely happens.
void divide(ir::RangeOp range, llvm::ArrayRef<Affine> forms);

/// Whether `range` is such a copy.
bool isOtherwise(ir::RangeOp range);

} // namespace costate::autodiff
