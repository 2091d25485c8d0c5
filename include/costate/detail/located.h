#pragma once
/// Arithmetic for functions of the library that are written in the kernel
/// language: every operation gets the place of the user's call.

#include "costate/expr.h"

namespace costate::detail {

template <class T> class Located {
public:
  using Element = T;

  Located() = default;
  Located(Handle handle, const std::source_location &place)
      : handle(handle), place(place) {}
  static Located number(double value, const std::source_location &place) {
    return {literal<T>(static_cast<T>(value), place), place};
  }

  operator Expr<T>() const { return Expr<T>(handle); }
  Handle value() const { return handle; }
  const std::source_location &where() const { return place; }
  Located same(double value) const { return number(value, place); }

  friend Located operator+(const Located &a, const Located &b) {
    return a.apply(Op::Add, b);
  }
  friend Located operator-(const Located &a, const Located &b) {
    return a.apply(Op::Sub, b);
  }
  friend Located operator*(const Located &a, const Located &b) {
    return a.apply(Op::Mul, b);
  }
  friend Located operator/(const Located &a, const Located &b) {
    return a.apply(Op::Div, b);
  }
  friend Located operator-(const Located &a) { return a.apply(Op::Neg); }
  friend Located abs(const Located &a) { return a.apply(Op::Abs); }
  friend Located sqrt(const Located &a) { return a.apply(Op::Sqrt); }
  friend Located sin(const Located &a) { return a.apply(Op::Sin); }
  friend Located cos(const Located &a) { return a.apply(Op::Cos); }

  Handle compare(Op op, const Located &other) const {
    return pure(op, DType::Bool, {handle, other.handle}, place);
  }
  friend Handle operator>(const Located &a, const Located &b) {
    return a.compare(Op::Gt, b);
  }
  friend Handle operator<(const Located &a, const Located &b) {
    return a.compare(Op::Lt, b);
  }
  friend Handle operator==(const Located &a, const Located &b) {
    return a.compare(Op::Eq, b);
  }
  /// `a` if `condition` holds, else `b`.
  friend Located choose(Handle condition, const Located &a, const Located &b) {
    return {
        pure(Op::Select, dtypeOf<T>, {condition, a.handle, b.handle}, a.place),
        a.place};
  }

  Located apply(Op op) const {
    return {pure(op, dtypeOf<T>, {handle}, place), place};
  }
  Located apply(Op op, const Located &other) const {
    return {pure(op, dtypeOf<T>, {handle, other.handle}, place), place};
  }

private:
  Handle handle;
  std::source_location place;
};

/// Rows of numbers, for unrolled loops over matrices.
template <class T, int M, int N>
using Table = std::array<std::array<Located<T>, size_t(N)>, size_t(M)>;

} // namespace costate::detail
