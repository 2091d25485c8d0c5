#pragma once
/// Indices as affine forms.

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace costate::autodiff {

/// constant + sum of coefficient * symbol, in wrapping 64-bit arithmetic. A
/// symbol is a value that is not an addition, subtraction or multiplication by
/// a constant.
struct Affine {
  int64_t constant = 0;
  llvm::SmallMapVector<mlir::Value, int64_t, 4> terms;

  Affine(int64_t constant = 0) : constant(constant) {}
  static Affine of(mlir::Value index);
  static Affine ofSymbol(mlir::Value symbol);

  int64_t coefficient(mlir::Value symbol) const { return terms.lookup(symbol); }
  bool isConstant() const { return terms.empty(); }

  /// `scale` times `other`, added.
  Affine &add(const Affine &other, int64_t scale);
};

inline Affine operator+(Affine a, const Affine &b) { return a.add(b, 1); }
inline Affine operator-(Affine a, const Affine &b) { return a.add(b, -1); }
inline Affine operator*(const Affine &a, int64_t scale) {
  return Affine().add(a, scale);
}
inline Affine operator-(const Affine &a) { return a * -1; }

/// Whether `high` is greater than `low` whatever counts come to: numbers from 0
/// on, of iterations, work items and elements. A symbol that `varies` may have
/// another value in each of the two.
bool isAbove(const Affine &high, const Affine &low,
             llvm::function_ref<bool(mlir::Value)> varies,
             llvm::function_ref<bool(mlir::Value)> isCount);

/// Whether two values certainly differ: modulo a power of 2, which numbers that
/// wrap around keep, as `t % 2` and `(t + 1) % 2` do. Symbols that are not
/// fixed may have another value in each.
bool differInParity(mlir::Value a, mlir::Value b,
                    llvm::function_ref<bool(mlir::Value)> isFixed);

/// `a - b` if it is a constant.
std::optional<int64_t> constantDifference(const Affine &a, const Affine &b);
bool isSame(const Affine &a, const Affine &b);

} // namespace costate::autodiff
