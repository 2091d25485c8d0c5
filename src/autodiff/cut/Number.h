#pragma once
/// Arithmetic on bytes and iterations that a gradient does, as f64: products
/// may be large.

#include "ir/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace costate::autodiff {

class Number {
  using Value = mlir::Value;

public:
  using Builder = mlir::ImplicitLocOpBuilder;

  Number(Builder &b, Value value) : b(&b), value(value) {}
  static Number ofInteger(Builder &b, Value integer) {
    return {b, mlir::arith::SIToFPOp::create(b, b.getF64Type(), integer)};
  }

  /// To compute with where `other` stands.
  Number at(Builder &other) const { return {other, value}; }

  Number operator+(Number y) const { return of<mlir::arith::AddFOp>(y); }
  Number operator-(Number y) const { return of<mlir::arith::SubFOp>(y); }
  Number operator*(Number y) const { return of<mlir::arith::MulFOp>(y); }
  Number operator/(Number y) const { return of<mlir::arith::DivFOp>(y); }
  Number operator+(double y) const { return *this + constant(y); }
  Number operator-(double y) const { return *this - constant(y); }
  Number operator*(double y) const { return *this * constant(y); }

  Number atLeast(Number y) const { return of<mlir::arith::MaxNumFOp>(y); }
  Number atMost(Number y) const { return of<mlir::arith::MinNumFOp>(y); }
  Number atLeast(double y) const { return atLeast(constant(y)); }
  Number roundedUp() const {
    return {*b, mlir::math::CeilOp::create(*b, value)};
  }
  Number roundedDown() const {
    return {*b, mlir::math::FloorOp::create(*b, value)};
  }
  Number root() const { return {*b, mlir::math::SqrtOp::create(*b, value)}; }

  /// `yes` where this is above `y`, else `no`.
  Number ifAbove(Number y, Number yes, Number no) const {
    Value above = mlir::arith::CmpFOp::create(
        *b, mlir::arith::CmpFPredicate::OGT, value, y.value);
    return {*b, mlir::arith::SelectOp::create(*b, above, yes.value, no.value)};
  }

  Number constant(double number) const {
    return {*b,
            mlir::arith::ConstantOp::create(*b, b->getF64FloatAttr(number))};
  }
  Value asInteger() const {
    return ir::ToIntOp::create(*b, b->getI64Type(), value,
                               /*isUnsigned=*/false);
  }

private:
  template <class Op> Number of(Number y) const {
    return {*b, Op::create(*b, value, y.value)};
  }

  Builder *b;
  Value value;
};

} // namespace costate::autodiff
