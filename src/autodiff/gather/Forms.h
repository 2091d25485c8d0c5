#pragma once
/// Affine forms as values.

#include "autodiff/replay/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::autodiff {

/// The least of `forms`, or with `sign` -1 the greatest.
mlir::Value least(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<Affine> forms,
                  int sign = 1);

mlir::Value compare(mlir::ImplicitLocOpBuilder &b,
                    mlir::arith::CmpIPredicate predicate, mlir::Value x,
                    mlir::Value y);

/// An index, as a value of `type`.
mlir::Value ofType(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                   mlir::Type type);

/// `a` and `b`, of which one may be null: certainly true.
mlir::Value both(mlir::ImplicitLocOpBuilder &builder, mlir::Value a,
                 mlir::Value b);

/// Whether the host knows it before it launches anything.
bool isKnownToHost(const Affine &form);

} // namespace costate::autodiff
