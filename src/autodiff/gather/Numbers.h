#pragma once
/// Numbers of the elements of a box: first those of its interior, then those
/// of its border. So threads with consecutive numbers do the same.

#include "autodiff/rules/Rules.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// One dimension: low <= from <= to <= high; the interior is [from, to).
struct Cut {
  mlir::Value low, from, to, high;
};

/// Of `low` and `high`, and of the others where they lie between these.
Cut cutBetween(Builder &b, mlir::Value low, mlir::Value from, mlir::Value to,
               mlir::Value high);

mlir::Value countAll(Builder &b, llvm::ArrayRef<Cut> cuts);
mlir::Value countInside(Builder &b, llvm::ArrayRef<Cut> cuts);

/// The element of the interior that has the number `number`. What all elements
/// share is computed by `front`.
Values elementInside(Builder &front, Builder &b, llvm::ArrayRef<Cut> cuts,
                     mlir::Value number);

/// The element of the border that has the number `number`, less those of the
/// interior.
Values elementOfBorder(Builder &front, Builder &b, llvm::ArrayRef<Cut> cuts,
                       mlir::Value number);

} // namespace costate::autodiff
