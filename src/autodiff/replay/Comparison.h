#pragma once
/// Assertions about elements, by which a gradient that is not certain ends.

#include "autodiff/rules/Rules.h"
#include "ir/Kernel.h"

namespace costate::autodiff {

/// On loads and stores of memory itself, also where others are of a copy.
inline constexpr llvm::StringLiteral keptAttr = "costate.check_kept";

/// Ends the launch with `text` unless `condition` holds. `{e}` of the text
/// stands for the element, what comes after it for the values.
ir::AssertOp require(Builder &b, mlir::Value condition, llvm::StringRef text,
                     mlir::Value array, mlir::ValueRange indices,
                     llvm::ArrayRef<mlir::Value> values = {});

/// Ends the launch unless memory holds the bits of `found` in an element.
ir::AssertOp requireHeld(Builder &b, mlir::Value found, mlir::Value array,
                         mlir::ValueRange indices);

/// Ends the launch: memory holds another value than `found`.
void refuseOther(Builder &b, mlir::Value found, mlir::Value array,
                 mlir::ValueRange indices);

/// Exponents of relative distances for f64 and f32. What may be overwritten may
/// have changed by any distance; that of `fast_math` in few operations makes no
/// other gradient than `fast_math` does.
struct Tolerance {
  int f64, f32;
};
inline constexpr Tolerance ofSums{-36, -14}, ofFewOperations{-36, -18};

// For assertions by requireHeld(); those of integers stay as they are.

/// What has been found.
mlir::Value foundOf(ir::AssertOp assertion);
/// Lets it pass, too, where the two are as near as that.
void tolerateRounding(ir::AssertOp assertion, Tolerance tolerance);
/// The same where both may have the rounding error `error` (roundingError).
void tolerateError(ir::AssertOp assertion, mlir::Value error);
/// What comes after it uses what memory holds, so that other rounding takes no
/// other branch.
void goOnWithMemory(ir::AssertOp assertion);

} // namespace costate::autodiff
