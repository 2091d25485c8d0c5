#pragma once
/// Functions of vectors, and functions that go by component.

#include "costate/custom_derivative.h"
#include "costate/detail/located.h"
#include "costate/tensor.h"

namespace costate {

namespace detail {

template <class A>
concept VectorLike = Tensor<A> && ShapeOf<A>::rank == 1;
template <class A>
concept FloatTensor = Tensor<A> && FloatElement<ElementOf<A>>;
template <class A>
concept NumberTensor = Tensor<A> && isNumber<ElementOf<A>>;
template <class A>
concept BoolTensor = Tensor<A> && std::is_same_v<ElementOf<A>, bool>;

template <class A, class T, class S>
concept BroadcastFor = TensorOperandFor<A, T, S> || OperandFor<A, T>;

template <class A, class B>
concept SameElement =
    Tensor<A> && Tensor<B> && std::is_same_v<ElementOf<A>, ElementOf<B>>;

/// What a function of A and B computes in, if one of them is a tensor.
template <class A, class B> struct TensorJoin {};
template <Tensor A, class B>
  requires(BroadcastFor<B, ElementOf<A>, ShapeOf<A>>)
struct TensorJoin<A, B> : TensorTypes<ElementOf<A>, ShapeOf<A>> {};
template <class A, Tensor B>
  requires(BroadcastFor<A, ElementOf<B>, ShapeOf<B>> && !SameElement<A, B>)
struct TensorJoin<A, B> : TensorTypes<ElementOf<B>, ShapeOf<B>> {};

template <class A, class B>
concept TensorPair = requires { typename TensorJoin<A, B>::Shape; };
template <class A, class B>
using JoinedElement = typename TensorJoin<A, B>::Element;
template <class A, class B>
using JoinedShape = typename TensorJoin<A, B>::Shape;
template <class A, class B>
concept VectorPair = VectorLike<A> && VectorLike<B> && TensorPair<A, B> &&
                     isNumber<JoinedElement<A, B>>;

template <class A> auto elementwise(Op op, const A &a, Loc loc) {
  using T = ElementOf<A>;
  using S = ShapeOf<A>;
  return mapped<T, S>(op, Components<S>{a.components(loc), loc});
}
template <class A, class B>
auto elementwise(Op op, const A &a, const B &b,
                 const std::source_location &place) {
  using T = JoinedElement<A, B>;
  using S = JoinedShape<A, B>;
  return mapped<T, S>(op, BroadcastOperand<T, S>(a, place),
                      BroadcastOperand<T, S>(b, place));
}

/// One value from all components, from the first one on.
template <class A> auto folded(Op op, const A &a, Loc loc) {
  using T = ElementOf<A>;
  auto all = a.components(loc);
  Handle result = all[0];
  for (size_t k = 1; k < all.size(); ++k)
    result = pure(op, dtypeOf<T>, {result, all[k]}, loc);
  return Expr<T>(result);
}

/// The root of a sum of squares; its derivative is 0 at 0.
template <class T> Expr<T> rootOfSquares(Expr<T> squares, Loc loc) {
  auto function = [loc](Expr<T> a) {
    return Expr<T>(pure(Op::Sqrt, dtypeOf<T>, {a.value(loc)}, loc));
  };
  auto partial = [loc](Expr<T>, Expr<T> r) {
    Handle zero = literal<T>(0, loc), root = r.value(loc);
    Handle isZero = pure(Op::Eq, DType::Bool, {root, zero}, loc);
    Handle slope = pure(Op::Div, dtypeOf<T>, {literal<T>(0.5, loc), root}, loc);
    return Expr<T>(pure(Op::Select, dtypeOf<T>, {isZero, zero, slope}, loc));
  };
  return CustomDerivative(function, partial, loc)(squares);
}

} // namespace detail

#define COSTATE_PLACE                                                          \
  std::source_location place = std::source_location::current()

/// A vector of numbers and traced values.
template <class A, class B>
  requires detail::Joinable<A, B>
VecExpr<detail::JoinOf<A, B>, 2> vec(const A &a, const B &b, COSTATE_PLACE) {
  using T = detail::JoinOf<A, B>;
  return {Source<T>(a, place), b};
}
template <class A, class B, class C>
  requires detail::Joinable<A, B, C>
VecExpr<detail::JoinOf<A, B, C>, 3> vec(const A &a, const B &b, const C &c,
                                        COSTATE_PLACE) {
  using T = detail::JoinOf<A, B, C>;
  return {Source<T>(a, place), b, c};
}
template <class A, class B, class C, class D>
  requires detail::Joinable<A, B, C, D>
VecExpr<detail::JoinOf<A, B, C, D>, 4> vec(const A &a, const B &b, const C &c,
                                           const D &d, COSTATE_PLACE) {
  using T = detail::JoinOf<A, B, C, D>;
  return {Source<T>(a, place), b, c, d};
}

template <class A, class B>
  requires detail::VectorPair<A, B>
Expr<detail::JoinedElement<A, B>> dot(const A &a, const B &b, COSTATE_PLACE) {
  using T = detail::JoinedElement<A, B>;
  using S = detail::ShapeOf<A>;
  auto left = detail::componentsAs<T, S>(a, place);
  auto right = detail::componentsAs<T, S>(b, place);
  return Expr<T>(
      detail::sumOfProducts<T>(&left[0], 1, &right[0], 1, S::count, place));
}

/// In three dimensions; in two, its third component.
template <class A, class B>
  requires(detail::VectorPair<A, B> &&
           (detail::ShapeOf<A>::count == 2 || detail::ShapeOf<A>::count == 3))
auto cross(const A &a, const B &b, COSTATE_PLACE) {
  using T = detail::JoinedElement<A, B>;
  using S = detail::ShapeOf<A>;
  auto u = detail::componentsAs<T, S>(a, place);
  auto v = detail::componentsAs<T, S>(b, place);
  auto minor = [&](size_t i, size_t j) {
    using L = detail::Located<T>;
    return L(u[i], place) * L(v[j], place) - L(u[j], place) * L(v[i], place);
  };
  if constexpr (S::count == 2)
    return Expr<T>(minor(0, 1));
  else
    return VecExpr<T, 3>(detail::Handles<S>{
        minor(1, 2).value(), minor(2, 0).value(), minor(0, 1).value()});
}

/// The matrix of all products a[i] * b[j].
template <class A, class B>
  requires(
      detail::VectorLike<A> && detail::VectorLike<B> &&
      detail::Joinable<Expr<detail::ElementOf<A>>, Expr<detail::ElementOf<B>>>)
auto outer(const A &a, const B &b, COSTATE_PLACE) {
  using T =
      detail::JoinOf<Expr<detail::ElementOf<A>>, Expr<detail::ElementOf<B>>>;
  using Product = Shape<detail::ShapeOf<A>::count, detail::ShapeOf<B>::count>;
  auto u = detail::componentsAs<T, detail::ShapeOf<A>>(a, place);
  auto v = detail::componentsAs<T, detail::ShapeOf<B>>(b, place);
  detail::Handles<Product> all;
  for (size_t k = 0; k < all.size(); ++k)
    all[k] = detail::pure(detail::Op::Mul, dtypeOf<T>,
                          {u[k / v.size()], v[k % v.size()]}, place);
  return TensorExpr<T, Product>(all);
}

/// The sum of the squares of all components.
template <detail::NumberTensor A>
Expr<detail::ElementOf<A>> norm_sqr(const A &a, COSTATE_PLACE) {
  auto all = a.components(place);
  return Expr<detail::ElementOf<A>>(detail::sumOfProducts<detail::ElementOf<A>>(
      &all[0], 1, &all[0], 1, static_cast<int>(all.size()), place));
}
/// The Euclidean norm, of a matrix that of Frobenius. Its derivative at 0 is 0.
template <detail::FloatTensor A>
Expr<detail::ElementOf<A>> norm(const A &a, COSTATE_PLACE) {
  return detail::rootOfSquares(norm_sqr(a, place), place);
}
/// `a / norm(a)`; NaN for 0.
template <detail::FloatTensor A> auto normalized(const A &a, COSTATE_PLACE) {
  using T = detail::ElementOf<A>;
  using S = detail::ShapeOf<A>;
  detail::Components<S> all{a.components(place), place};
  Expr<T> length = norm(TensorExpr<T, S>(all.all), place);
  return detail::mapped<T, S>(
      detail::Op::Div, all, {detail::repeated<S>(length.value(place)), place});
}

#define COSTATE_FOLD(name, op, Kind)                                           \
  template <detail::Kind A>                                                    \
  Expr<detail::ElementOf<A>> name(const A &a, COSTATE_PLACE) {                 \
    return detail::folded(detail::Op::op, a, place);                           \
  }
COSTATE_FOLD(sum, Add, NumberTensor)
COSTATE_FOLD(min_component, Min, NumberTensor)
COSTATE_FOLD(max_component, Max, NumberTensor)
COSTATE_FOLD(all, And, BoolTensor)
COSTATE_FOLD(any, Or, BoolTensor)
#undef COSTATE_FOLD

#define COSTATE_UNARY(name, op, Kind)                                          \
  template <detail::Kind A> auto name(const A &a, COSTATE_PLACE) {             \
    return detail::elementwise(detail::Op::op, a, place);                      \
  }
#define COSTATE_BINARY(name, op)                                               \
  template <class A, class B>                                                  \
    requires detail::TensorPair<A, B>                                          \
  auto name(const A &a, const B &b, COSTATE_PLACE) {                           \
    return detail::elementwise(detail::Op::op, a, b, place);                   \
  }
COSTATE_UNARY(abs, Abs, NumberTensor)
#define COSTATE_INSTRUCTION(Name, name, ...)                                   \
  COSTATE_UNARY(name, Name, FloatTensor)
#define COSTATE_FUNCTION(Name, name, mnemonic, operands, ...)                  \
  COSTATE_FUNCTION_##operands(name, Name)
#define COSTATE_FUNCTION_1(name, op) COSTATE_UNARY(name, op, FloatTensor)
#define COSTATE_FUNCTION_2(name, op) COSTATE_BINARY(name, op)
#include "costate/detail/operations.def"
#undef COSTATE_FUNCTION_1
#undef COSTATE_FUNCTION_2
COSTATE_BINARY(min, Min)
COSTATE_BINARY(max, Max)
COSTATE_BINARY(fmod, Rem)
COSTATE_BINARY(hadamard, Mul) ///< component by component, of matrices too
#undef COSTATE_UNARY
#undef COSTATE_BINARY

/// Some components in another order: `swizzle<2, 1, 0>(v)` is (z, y, x).
template <size_t... k, detail::VectorLike A>
  requires(sizeof...(k) > 0 && ((k < size_t(detail::ShapeOf<A>::count)) && ...))
auto swizzle(const A &a, COSTATE_PLACE) {
  auto from = a.components(place);
  using S = Shape<int(sizeof...(k))>;
  return TensorExpr<detail::ElementOf<A>, S>(detail::Handles<S>{from[k]...});
}

/// `a` where the condition holds, else `b`; both are evaluated.
template <class A, class B>
  requires detail::TensorPair<A, B>
auto select(Operand<bool> condition, const A &a, const B &b, COSTATE_PLACE) {
  using T = detail::JoinedElement<A, B>;
  using S = detail::JoinedShape<A, B>;
  BroadcastOperand<T, S> then(a, place), otherwise(b, place);
  for (size_t k = 0; k < then.all.size(); ++k)
    then.all[k] =
        detail::pure(detail::Op::Select, dtypeOf<T>,
                     {condition.value, then.all[k], otherwise.all[k]}, place);
  return TensorExpr<T, S>(then.all);
}

/// Of each component that of `a` where the condition holds, else that of `b`.
template <detail::BoolTensor C, class A, class B>
  requires(detail::TensorPair<A, B> &&
           std::same_as<detail::JoinedShape<A, B>, detail::ShapeOf<C>>)
auto select(const C &condition, const A &a, const B &b, COSTATE_PLACE) {
  using T = detail::JoinedElement<A, B>;
  using S = detail::ShapeOf<C>;
  auto holds = condition.components(place);
  BroadcastOperand<T, S> then(a, place), otherwise(b, place);
  for (size_t k = 0; k < holds.size(); ++k)
    then.all[k] =
        detail::pure(detail::Op::Select, dtypeOf<T>,
                     {holds[k], then.all[k], otherwise.all[k]}, place);
  return TensorExpr<T, S>(then.all);
}
template <detail::BoolTensor C, class A, class B>
  requires detail::Joinable<A, B>
auto select(const C &condition, const A &a, const B &b, COSTATE_PLACE) {
  using All = TensorExpr<detail::JoinOf<A, B>, detail::ShapeOf<C>>;
  return select(condition, All(Source<detail::JoinOf<A, B>>(a, place)),
                All(Source<detail::JoinOf<A, B>>(b, place)), place);
}

/// All components converted to T.
template <class T, detail::Tensor A> auto cast(const A &a, COSTATE_PLACE) {
  using S = detail::ShapeOf<A>;
  detail::Handles<S> all = a.components(place);
  for (detail::Handle &one : all)
    one = detail::widened<T>(one, dtypeOf<detail::ElementOf<A>>, place);
  return TensorExpr<T, S>(all);
}

/// `a`, which counts as a constant in every derivative.
template <detail::FloatTensor A> auto stop_gradient(const A &a, COSTATE_PLACE) {
  return detail::elementwise(detail::Op::StopGradient, a, place);
}

} // namespace costate
