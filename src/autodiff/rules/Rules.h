#pragma once
/// Derivatives of the scalar operations, each stated once for both modes.

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Operation.h"

namespace costate::autodiff {

using Builder = mlir::ImplicitLocOpBuilder;
using Values = llvm::SmallVector<mlir::Value>;

/// The partial derivative of a result with respect to one operand.
struct Factor {
  enum Kind {
    Zero,     ///< no derivative passes
    One,      ///< +1
    MinusOne, ///< -1
    Times,    ///< `value`
    StrongBy, ///< `value`, and nothing where `value` is 0
    If,       ///< 1 where the bool `value` holds, else nothing
    IfNot,    ///< the opposite
    Share,    ///< like If, but half where the bool `tie` holds
    Convert,  ///< +1 between f32 and f64
  };
  Kind kind = Zero;
  mlir::Value value{}, tie{};
  double times = 1; ///< of the product with `value`; of Times
};

/// What a rule sees: the values of the operation, as they are available where
/// the derivative is emitted. Asking for a value is what makes it needed.
struct RuleArguments {
  Builder &b;
  mlir::Operation *op;
  llvm::function_ref<mlir::Value(unsigned)> operand;
  llvm::function_ref<mlir::Value()> result;
};

/// Returns the factor for operand `index`; emits what computes it.
using Rule = Factor (*)(const RuleArguments &, unsigned index);

/// The rule of `op`, or null if its derivative is not known.
Rule findRule(mlir::Operation *op);

/// Says that there is no rule for `op`, and what to do.
mlir::LogicalResult emitNoRule(mlir::Operation *op);

/// Whether results of `op` never depend smoothly on its operands: comparisons,
/// conversions to integer, what the user declares constant, rounding.
bool isDiscrete(mlir::Operation *op);

/// `g` times `factor`, in the type `type`; null if nothing passes. `g` is an
/// adjoint or a tangent.
mlir::Value applyFactor(Builder &b, mlir::Value g, Factor factor,
                        mlir::Type type);

/// The constant `value` of i64.
mlir::Value indexConstant(Builder &b, int64_t value);

/// The constant `value` of float type `type`.
mlir::Value floatConstant(Builder &b, mlir::Type type, double value);

} // namespace costate::autodiff
