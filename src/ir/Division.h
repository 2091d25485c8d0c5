#pragma once
/// From the number of a work item to its indices.

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::ir {

/// A divisor of i64 that is below 2^31, as numbers of i32: itself, and the
/// halves of floor((2^64 - 1) / divisor), which a constant does without. One
/// below 1 counts as 1.
struct Divisor {
  mlir::Value number, low, high;

  static Divisor of(mlir::ImplicitLocOpBuilder &b, mlir::Value number);
};

/// Whether `count` is below 2^31.
mlir::Value isNarrow(mlir::ImplicitLocOpBuilder &b, mlir::Value count);

/// The indices of work item `number`, the last one fastest. The first extent is
/// not looked at.
llvm::SmallVector<mlir::Value> indicesOf(mlir::ImplicitLocOpBuilder &b,
                                         mlir::Value number,
                                         mlir::ValueRange extents);

/// The same for GPUs, which have no instruction that divides: where `isNarrow`
/// of the number of work items holds, by multiplications (as in Lemire, Kaser,
/// Kurz, "Faster remainder by direct computation", 2019, for numbers of 32
/// bits). `divisors`: the extents, but for the first.
llvm::SmallVector<mlir::Value> indicesOf(mlir::ImplicitLocOpBuilder &b,
                                         mlir::Value number,
                                         mlir::ValueRange extents,
                                         llvm::ArrayRef<Divisor> divisors,
                                         mlir::Value isNarrow);

} // namespace costate::ir
