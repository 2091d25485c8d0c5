#pragma once
/// The values of a kernel: Expr, Var, ElementRef, Scalar, and their operators.
///
/// They describe a computation; nothing is computed until the kernel runs. So
/// they do not convert to bool: `&`, `|` and `~` stand for `&&`, `||` and `!`,
/// and `IF`, `WHILE`, `select` for `if`, `while` and `?:`.

#include "costate/detail/convert.h"

namespace costate {

/// An operand of an operator in T: a traced value of type T or of a narrower
/// type of the same kind, or a number of the host. A floating number is no
/// operand of an integer operator; use `cast`.
template <class T> struct Operand : detail::Input {
  template <detail::OperandFor<T> A>
  Operand(const A &source,
          std::source_location place = std::source_location::current())
      : Input{detail::valueAs<T>(source, place), place} {}
};

/// What may be assigned to a T.
template <class T> struct Source : detail::Input {
  template <detail::SourceFor<T> A>
  Source(const A &source,
         std::source_location place = std::source_location::current())
      : Input{detail::valueAs<T>(source, place), place} {}
};

/// An index or an extent: any integer.
struct IndexOperand : detail::Input {
  template <detail::IndexFor A>
  IndexOperand(const A &source,
               std::source_location place = std::source_location::current())
      : Input{detail::valueAs<int64_t>(source, place), place} {}
};

namespace detail {

template <class T> inline constexpr bool isNumber = !std::is_same_v<T, bool>;

/// Expr<bool>; it depends on T because Expr is not complete yet.
template <class T>
using Truth = Expr<std::conditional_t<std::is_void_v<T>, void, bool>>;

template <class T>
Expr<T> apply(Op op, const Operand<T> &a, const Operand<T> &b) {
  return Expr<T>(pure(op, dtypeOf<T>, {a.value, b.value}, b.loc));
}
template <class T> Expr<T> apply(Op op, const Operand<T> &a) {
  return Expr<T>(pure(op, dtypeOf<T>, {a.value}, a.loc));
}
template <class T>
Truth<T> compare(Op op, const Operand<T> &a, const Operand<T> &b) {
  return Truth<T>(pure(op, DType::Bool, {a.value, b.value}, b.loc));
}

/// The operators of every traced value of type T.
template <class T> class Ops {
public:
  /// A traced value has no truth while the kernel is traced.
  explicit operator bool() const = delete;

#define COSTATE_OPERATOR(Result, symbol, function, op, Condition)              \
  friend Result operator symbol(Operand<T> a, Operand<T> b)                    \
    requires(Condition)                                                        \
  {                                                                            \
    return detail::function<T>(Op::op, a, b);                                  \
  }
  COSTATE_OPERATOR(Expr<T>, +, apply, Add, isNumber<T>)
  COSTATE_OPERATOR(Expr<T>, -, apply, Sub, isNumber<T>)
  COSTATE_OPERATOR(Expr<T>, *, apply, Mul, isNumber<T>)
  COSTATE_OPERATOR(Expr<T>, /, apply, Div, isNumber<T>)
  COSTATE_OPERATOR(Expr<T>, %, apply, Rem, isNumber<T>)
  COSTATE_OPERATOR(Expr<T>, &, apply, And, std::is_integral_v<T>)
  COSTATE_OPERATOR(Expr<T>, |, apply, Or, std::is_integral_v<T>)
  COSTATE_OPERATOR(Expr<T>, ^, apply, Xor, std::is_integral_v<T>)
  COSTATE_OPERATOR(Expr<T>, <<, apply, Shl, isInteger(dtypeOf<T>))
  COSTATE_OPERATOR(Expr<T>, >>, apply, Shr, isInteger(dtypeOf<T>))
  COSTATE_OPERATOR(Truth<T>, <, compare, Lt, isNumber<T>)
  COSTATE_OPERATOR(Truth<T>, <=, compare, Le, isNumber<T>)
  COSTATE_OPERATOR(Truth<T>, >, compare, Gt, isNumber<T>)
  COSTATE_OPERATOR(Truth<T>, >=, compare, Ge, isNumber<T>)
  COSTATE_OPERATOR(Truth<T>, ==, compare, Eq, true)
  COSTATE_OPERATOR(Truth<T>, !=, compare, Ne, true)
#undef COSTATE_OPERATOR

  friend Expr<T> operator-(Operand<T> a)
    requires(isNumber<T>)
  {
    return detail::apply<T>(Op::Neg, a);
  }
  friend Expr<T> operator+(Operand<T> a)
    requires(isNumber<T>)
  {
    return Expr<T>(a.value);
  }
  friend Expr<T> operator~(Operand<T> a)
    requires(std::is_integral_v<T>)
  {
    return detail::apply<T>(Op::Not, a);
  }
};

} // namespace detail

/// An immutable value. Copies are the same value.
template <class T> class Expr : public detail::Ops<T> {
public:
  Expr() = default; ///< must be assigned before it is used
  explicit Expr(detail::Handle handle) : handle(handle) {}
  Expr(const Expr &) = default;
  /// Not to a result: that is no place which keeps it.
  Expr &operator=(const Expr &) & = default;
  template <detail::SourceFor<T> A>
    requires(!std::is_same_v<A, Expr>)
  Expr(const A &source,
       std::source_location place = std::source_location::current())
      : handle(detail::valueAs<T>(source, place)) {}

  detail::Handle value(Loc) const { return handle; }

private:
  detail::Handle handle;
};

/// An index of a loop or range, or an extent.
using Index = Expr<int64_t>;

/// A mutable local variable. Initialising or copying makes a new variable.
template <class T> class Var : public detail::Ops<T> {
public:
  /// Starts with 0.
  Var(std::source_location place = std::source_location::current())
      : Var(detail::constant(dtypeOf<T>, 0, place), place) {}
  template <detail::SourceFor<T> A>
    requires(!std::is_same_v<A, Var>)
  Var(const A &source,
      std::source_location place = std::source_location::current())
      : Var(detail::valueAs<T>(source, place), place) {}
  Var(const Var &other,
      std::source_location place = std::source_location::current())
      : Var(other.value(place), place) {}

  // `volatile` lets no temporary bind here, so `v = expr` has one meaning.
  Var &operator=(const volatile Var &other) {
    return *this = Source<T>(const_cast<const Var &>(other));
  }
  Var &operator=(Source<T> source) {
    assign(source.value, source.loc);
    return *this;
  }

#define COSTATE_ASSIGN(symbol, op, Condition)                                  \
  Var &operator symbol(Source<T> source)                                       \
    requires(Condition)                                                        \
  {                                                                            \
    return update(detail::Op::op, source);                                     \
  }
  COSTATE_ASSIGN(+=, Add, detail::isNumber<T>)
  COSTATE_ASSIGN(-=, Sub, detail::isNumber<T>)
  COSTATE_ASSIGN(*=, Mul, detail::isNumber<T>)
  COSTATE_ASSIGN(/=, Div, detail::isNumber<T>)
  COSTATE_ASSIGN(%=, Rem, detail::isNumber<T>)
  COSTATE_ASSIGN(&=, And, std::is_integral_v<T>)
  COSTATE_ASSIGN(|=, Or, std::is_integral_v<T>)
  COSTATE_ASSIGN(^=, Xor, std::is_integral_v<T>)
  COSTATE_ASSIGN(<<=, Shl, isInteger(dtypeOf<T>))
  COSTATE_ASSIGN(>>=, Shr, isInteger(dtypeOf<T>))
#undef COSTATE_ASSIGN

  detail::Handle value(Loc loc) const {
    return detail::read(dtypeOf<T>, handle, loc);
  }

private:
  template <class, class> friend class TensorVar;

  Var(detail::Handle start, Loc loc)
      : handle(detail::declare(dtypeOf<T>, start, loc)) {}

  void assign(detail::Handle value, Loc loc) {
    detail::assign(handle, value, loc);
  }
  Var &update(detail::Op op, const Source<T> &source) {
    assign(detail::pure(op, dtypeOf<T>, {value(source.loc), source.value},
                        source.loc),
           source.loc);
    return *this;
  }

  detail::Handle handle;
};

/// An element of an array argument. Reading it loads, `=` stores, `+=`, `-=`,
/// `&=`, `|=` and `^=` are atomic, as `atomic_add` and so on; `*=` and `/=` are
/// a load and a store. It stays a reference: `auto e = x(i)` reads later.
template <class T> class ElementRef : public detail::Ops<T> {
public:
  ElementRef(const detail::Place &place, Loc loc) : place(place), loc(loc) {}
  ElementRef(const ElementRef &) = default;

  const ElementRef &operator=(const ElementRef &other) const {
    detail::store(place, other.value(loc), loc);
    return *this;
  }
  ElementRef &operator=(const ElementRef &other) {
    detail::store(place, other.value(loc), loc);
    return *this;
  }
  const ElementRef &operator=(Source<T> source) const {
    detail::store(place, source.value, source.loc);
    return *this;
  }
  const ElementRef &operator+=(Source<T> source) const
    requires(detail::isNumber<T>)
  {
    detail::update(detail::Op::Add, place, source.value, source.loc);
    return *this;
  }
  const ElementRef &operator-=(Source<T> source) const
    requires(detail::isNumber<T>)
  {
    detail::Handle negative =
        detail::pure(detail::Op::Neg, dtypeOf<T>, {source.value}, source.loc);
    detail::update(detail::Op::Add, place, negative, source.loc);
    return *this;
  }

#define COSTATE_ASSIGN(symbol, op)                                             \
  const ElementRef &operator symbol(Source<T> source) const                    \
    requires(detail::isNumber<T>)                                              \
  {                                                                            \
    detail::Handle old = value(source.loc);                                    \
    detail::store(place,                                                       \
                  detail::pure(detail::Op::op, dtypeOf<T>,                     \
                               {old, source.value}, source.loc),               \
                  source.loc);                                                 \
    return *this;                                                              \
  }
  COSTATE_ASSIGN(*=, Mul)
  COSTATE_ASSIGN(/=, Div)
#undef COSTATE_ASSIGN

  // On integers and truth values, atomic as `atomic_and` and so on.
#define COSTATE_ASSIGN(symbol, op)                                             \
  const ElementRef &operator symbol(Source<T> source) const                    \
    requires(std::is_integral_v<T>)                                            \
  {                                                                            \
    detail::update(detail::Op::op, place, source.value, source.loc);           \
    return *this;                                                              \
  }
  COSTATE_ASSIGN(&=, And)
  COSTATE_ASSIGN(|=, Or)
  COSTATE_ASSIGN(^=, Xor)
#undef COSTATE_ASSIGN

  // Each of these is one indivisible step, whoever else updates the element at
  // the same time, and returns what the element was before.
#define COSTATE_ATOMIC(name, op, Condition)                                    \
  friend Expr<T> name(const ElementRef &element, Source<T> value)              \
    requires(Condition)                                                        \
  {                                                                            \
    return Expr<T>(                                                            \
        detail::fetch(detail::Op::op, element.place, value.value, value.loc)); \
  }
  COSTATE_ATOMIC(atomic_add, Add, detail::isNumber<T>)
  COSTATE_ATOMIC(atomic_min, Min, detail::isNumber<T>) // NaN counts as missing
  COSTATE_ATOMIC(atomic_max, Max, detail::isNumber<T>)
  COSTATE_ATOMIC(atomic_and, And, std::is_integral_v<T>)
  COSTATE_ATOMIC(atomic_or, Or, std::is_integral_v<T>)
  COSTATE_ATOMIC(atomic_xor, Xor, std::is_integral_v<T>)
#undef COSTATE_ATOMIC
  friend Expr<T> atomic_sub(const ElementRef &element, Source<T> value)
    requires(detail::isNumber<T>)
  {
    detail::Handle negative =
        detail::pure(detail::Op::Neg, dtypeOf<T>, {value.value}, value.loc);
    return Expr<T>(
        detail::fetch(detail::Op::Add, element.place, negative, value.loc));
  }
  /// The element becomes `value`.
  friend Expr<T> atomic_exchange(const ElementRef &element, Source<T> value) {
    return Expr<T>(detail::exchange(element.place, value.value, value.loc));
  }
  /// The element becomes `desired` if it has the bits of `expected`.
  friend Expr<T> atomic_compare_exchange(const ElementRef &element,
                                         Source<T> expected,
                                         Source<T> desired) {
    return Expr<T>(detail::compareExchange(element.place, expected.value,
                                           desired.value, desired.loc));
  }

  detail::Handle value(Loc at) const { return detail::load(place, at); }

private:
  detail::Place place;
  Loc loc;
};

/// A scalar argument of a kernel; the host passes it by value.
template <class T> class Scalar : public detail::Ops<T> {
public:
  explicit Scalar(detail::Handle handle) : handle(handle) {}
  detail::Handle value(Loc) const { return handle; }

private:
  detail::Handle handle;
};

} // namespace costate
