#pragma once
/// Arithmetic on floats of one type, as formulas are written.

#include "autodiff/rules/Rules.h"
#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace costate::autodiff {

class Number {
  using Value = mlir::Value;

public:
  Number(Builder &b, Value value) : b(&b), value(value) {}
  /// As f64: products of bytes and iterations may be large.
  static Number ofInteger(Builder &b, Value integer) {
    return {b, mlir::arith::SIToFPOp::create(b, b.getF64Type(), integer)};
  }
  operator Value() const { return value; }
  /// To compute with where `other` stands.
  Number at(Builder &other) const { return {other, value}; }

  Number operator+(Number y) const { return of<mlir::arith::AddFOp>(y); }
  Number operator-(Number y) const { return of<mlir::arith::SubFOp>(y); }
  Number operator*(Number y) const { return of<mlir::arith::MulFOp>(y); }
  Number operator/(Number y) const { return of<mlir::arith::DivFOp>(y); }
  Number operator+(double y) const { return *this + constant(y); }
  Number operator-(double y) const { return *this - constant(y); }
  Number operator*(double y) const { return *this * constant(y); }
  friend Number operator+(double x, Number y) { return y.constant(x) + y; }
  friend Number operator-(double x, Number y) { return y.constant(x) - y; }
  friend Number operator*(double x, Number y) { return y.constant(x) * y; }
  friend Number operator/(double x, Number y) { return y.constant(x) / y; }
  Number operator-() const { return of<mlir::arith::NegFOp>(); }
  /// Times `y`, but 0 where this is 0.
  Number strong(Number y) const { return of<ir::StrongMulOp>(y); }
  Number atLeast(Number y) const { return of<mlir::arith::MaxNumFOp>(y); }
  Number atMost(Number y) const { return of<mlir::arith::MinNumFOp>(y); }
  Number atLeast(double y) const { return atLeast(constant(y)); }
  Number roundedUp() const { return of<mlir::math::CeilOp>(); }
  Number roundedDown() const { return of<mlir::math::FloorOp>(); }
  Number root() const { return of<mlir::math::SqrtOp>(); }
  /// `yes` where this is above `y`, else `no`.
  Number ifAbove(Number y, Number yes, Number no) const {
    Value above = mlir::arith::CmpFOp::create(
        *b, mlir::arith::CmpFPredicate::OGT, value, y.value);
    return {*b, mlir::arith::SelectOp::create(*b, above, yes.value, no.value)};
  }
  Number constant(double number) const {
    return {*b, mlir::arith::ConstantOp::create(
                    *b, b->getFloatAttr(value.getType(), number))};
  }
  Value asInteger() const {
    return ir::ToIntOp::create(*b, b->getI64Type(), value,
                               /*isUnsigned=*/false);
  }

  /// The function `Op` of it, and perhaps another number.
  template <class Op, class... Others> Number of(Others... others) const {
    return {*b, Op::create(*b, value, others.value...)};
  }

private:
  Builder *b;
  Value value;
};

} // namespace costate::autodiff
