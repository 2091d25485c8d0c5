#pragma once
/// Pure operations of the syntax tree as kernel IR.

#include "syntax/Syntax.h"

#include "mlir/IR/Builders.h"

namespace costate::lowering {

/// The type of a value: integers are signless, and narrow numbers are held by
/// an i32 or f32.
mlir::Type typeOf(mlir::MLIRContext *context, DType type);
/// The element type of an array, which says whether it is unsigned.
mlir::Type elementTypeOf(mlir::MLIRContext *context, DType type);
/// The same of a private array, where only narrow integers need a sign.
mlir::Type localTypeOf(mlir::MLIRContext *context, DType type);

/// A constant from the representation of its value.
mlir::Value emitConstant(mlir::OpBuilder &b, mlir::Location loc, DType type,
                         uint64_t bits);

/// `op` on operands of type `from`, with a result of type `to`.
mlir::Value emitPure(mlir::OpBuilder &b, mlir::Location loc, syntax::Op op,
                     DType from, DType to, mlir::ValueRange operands);

} // namespace costate::lowering
