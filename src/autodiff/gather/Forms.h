#pragma once
/// Affine forms as values.

#include "autodiff/replay/Steps.h"
#include "autodiff/rules/Rules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace costate::autodiff {

/// The least of `forms`, or with `sign` -1 the greatest.
mlir::Value least(Builder &b, llvm::ArrayRef<Affine> forms, int sign = 1);

mlir::Value compare(Builder &b, mlir::arith::CmpIPredicate predicate,
                    mlir::Value x, mlir::Value y);

/// An index, as a value of `type`.
mlir::Value ofType(Builder &b, mlir::Value value, mlir::Type type);

/// `a` and `b`, of which one may be null: certainly true.
mlir::Value both(Builder &builder, mlir::Value a, mlir::Value b);

/// Whether the host knows it before it launches anything.
bool isKnownToHost(const Affine &form);

} // namespace costate::autodiff
