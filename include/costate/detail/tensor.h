#pragma once
/// What vectors and matrices of a kernel have in common: they are so many
/// values of T, row after row. Their operands and operators.

#include "costate/math.h"

#include <utility>

namespace costate {

/// The extents of a vector (one) or matrix (two).
template <int... extents> struct Shape {
  static_assert(((extents > 0) && ...), "an extent is at least 1");
  static constexpr int rank = sizeof...(extents);
  static constexpr int count = (1 * ... * extents);
  static constexpr int extent[] = {extents...};
};

template <class T, class S> class TensorExpr;
template <class T, class S> class TensorVar;
template <class T, class S> class TensorRef;

/// A vector or matrix variable, assignable as a whole and by component.
template <class T, int N> using Vec = TensorVar<T, Shape<N>>;
template <class T, int M, int N> using Mat = TensorVar<T, Shape<M, N>>;
/// An immutable vector or matrix; the result of every operation.
template <class T, int N> using VecExpr = TensorExpr<T, Shape<N>>;
template <class T, int M, int N> using MatExpr = TensorExpr<T, Shape<M, N>>;

namespace detail {

template <class S> using Handles = std::array<Handle, size_t(S::count)>;

/// The element type and shape of a tensor.
template <class T, class S> struct TensorTypes {
  using Element = T;
  using Shape = S;
};
template <class A> struct TensorTypesOf {};
template <class T, class S>
struct TensorTypesOf<TensorExpr<T, S>> : TensorTypes<T, S> {};
template <class T, class S>
struct TensorTypesOf<TensorVar<T, S>> : TensorTypes<T, S> {};
template <class T, class S>
struct TensorTypesOf<TensorRef<T, S>> : TensorTypes<T, S> {};
template <class T, class S>
struct TensorTypesOf<Scalar<TensorVar<T, S>>> : TensorTypes<T, S> {};

/// A vector or matrix of a kernel.
template <class A>
concept Tensor = requires { typename TensorTypesOf<A>::Shape; };
template <Tensor A> using ElementOf = typename TensorTypesOf<A>::Element;
template <Tensor A> using ShapeOf = typename TensorTypesOf<A>::Shape;

/// What holds a tensor on the host: std::array<T, N>, or rows of that.
template <class T, class S> struct HostTensor;
template <class T, int N> struct HostTensor<T, Shape<N>> {
  using type = std::array<T, N>;
};
template <class T, int M, int N> struct HostTensor<T, Shape<M, N>> {
  using type = std::array<std::array<T, N>, M>;
};

template <class A, class T, class S>
concept TensorFor = (Tensor<A> && std::is_same_v<ShapeOf<A>, S> &&
                     sameOrWider(dtypeOf<ElementOf<A>>, dtypeOf<T>)) ||
                    std::is_same_v<A, typename HostTensor<T, S>::type>;
template <class A, class T, class S>
concept TensorOperandFor =
    TensorFor<A, T, S> &&
    (!Tensor<A> || canonical<T> || std::is_same_v<ElementOf<A>, T>);

template <class T> Handle widened(Handle value, DType from, Loc loc) {
  return from == dtypeOf<T> ? value : pure(Op::Cast, dtypeOf<T>, {value}, loc);
}

/// The components of `source`, converted to T.
template <class T, class S, class A>
Handles<S> componentsAs(const A &source, Loc loc) {
  Handles<S> all;
  if constexpr (Tensor<A>) {
    all = source.components(loc);
    for (Handle &one : all)
      one = widened<T>(one, dtypeOf<ElementOf<A>>, loc);
  } else {
    size_t k = 0;
    if constexpr (S::rank == 1)
      for (T value : source)
        all[k++] = literal<T>(value, loc);
    else
      for (const auto &row : source)
        for (T value : row)
          all[k++] = literal<T>(value, loc);
  }
  return all;
}

/// The components of an operand or source, and the place that uses it.
template <class S> struct Components {
  Handles<S> all;
  Loc loc;
};

template <class S> Handles<S> repeated(Handle value) {
  Handles<S> all;
  all.fill(value);
  return all;
}

} // namespace detail

/// An operand of shape S where the operator computes in T.
template <class T, class S> struct TensorOperand : detail::Components<S> {
  template <detail::TensorOperandFor<T, S> A>
  TensorOperand(const A &source,
                std::source_location place = std::source_location::current())
      : detail::Components<S>{detail::componentsAs<T, S>(source, place),
                              place} {}
};

/// The same, or a number that stands for all components.
template <class T, class S> struct BroadcastOperand : detail::Components<S> {
  template <detail::TensorOperandFor<T, S> A>
  BroadcastOperand(const A &source,
                   std::source_location place = std::source_location::current())
      : detail::Components<S>{detail::componentsAs<T, S>(source, place),
                              place} {}
  template <detail::OperandFor<T> A>
  BroadcastOperand(const A &source,
                   std::source_location place = std::source_location::current())
      : detail::Components<S>{
            detail::repeated<S>(detail::valueAs<T>(source, place)), place} {}
};

/// What may be assigned to a tensor.
template <class T, class S> struct TensorSource : detail::Components<S> {
  template <detail::TensorFor<T, S> A>
  TensorSource(const A &source,
               std::source_location place = std::source_location::current())
      : detail::Components<S>{detail::componentsAs<T, S>(source, place),
                              place} {}
};

/// A component that is known while the kernel is made.
struct HostComponent {
  template <std::integral I>
  HostComponent(I index,
                std::source_location place = std::source_location::current())
      : index(std::in_range<int64_t>(+index) ? static_cast<int64_t>(index)
                                             : -1),
        loc(place) {}
  /// A position below `extent`; 0 after a mistake, which the kernel keeps.
  size_t below(int extent) const {
    if (index >= 0 && index < extent)
      return static_cast<size_t>(index);
    detail::noComponent(index, extent, loc);
    return 0;
  }
  int64_t index;
  Loc loc;
};

/// A component that is known when the kernel runs.
struct TracedComponent : detail::Input {
  template <detail::Traced A>
    requires(isInteger(dtypeOf<detail::TypeOf<A>>))
  TracedComponent(const A &index,
                  std::source_location place = std::source_location::current())
      : Input{detail::valueAs<int64_t>(index, place), place} {}
};

namespace detail {

template <class R, class S>
TensorExpr<R, S> mapped(Op op, const Components<S> &a, const Components<S> &b) {
  Handles<S> all;
  for (size_t k = 0; k < all.size(); ++k)
    all[k] = pure(op, dtypeOf<R>, {a.all[k], b.all[k]}, b.loc);
  return TensorExpr<R, S>(all);
}
template <class R, class S>
TensorExpr<R, S> mapped(Op op, const Components<S> &a) {
  Handles<S> all;
  for (size_t k = 0; k < all.size(); ++k)
    all[k] = pure(op, dtypeOf<R>, {a.all[k]}, a.loc);
  return TensorExpr<R, S>(all);
}

/// Sum of products of `count` components, `strideA` and `strideB` apart.
template <class T>
Handle sumOfProducts(const Handle *a, int strideA, const Handle *b, int strideB,
                     int count, Loc loc) {
  Handle sum = pure(Op::Mul, dtypeOf<T>, {*a, *b}, loc);
  for (int k = 1; k < count; ++k)
    sum = pure(
        Op::Add, dtypeOf<T>,
        {sum, pure(Op::Mul, dtypeOf<T>, {a[k * strideA], b[k * strideB]}, loc)},
        loc);
  return sum;
}

/// The shape of a matrix product, void if there is none.
template <class A, class B> struct ProductShape {
  using type = void;
};
template <int M, int K, int N> struct ProductShape<Shape<M, K>, Shape<K, N>> {
  using type = Shape<M, N>;
};
template <int M, int K> struct ProductShape<Shape<M, K>, Shape<K>> {
  using type = Shape<M>;
};
template <class T, class S, class B>
concept Factor =
    S::rank == 2 && Tensor<B> && TensorOperandFor<B, T, ShapeOf<B>> &&
    !std::is_void_v<typename ProductShape<S, ShapeOf<B>>::type>;

template <class T, class S, class R>
auto product(const Components<S> &a, const Components<R> &b) {
  using P = typename ProductShape<S, R>::type;
  constexpr int inner = S::extent[1], columns = R::count / inner;
  Handles<P> all;
  for (int i = 0; i < S::extent[0]; ++i)
    for (int j = 0; j < columns; ++j)
      all[size_t(i * columns + j)] =
          sumOfProducts<T>(&a.all[size_t(i * inner)], 1, &b.all[size_t(j)],
                           columns, inner, a.loc);
  return TensorExpr<T, P>(all);
}

/// The operators of every tensor of T and shape S. Those of vectors go by
/// component and take numbers for all components; a matrix has those of linear
/// algebra.
template <class T, class S> class TensorOps {
  static constexpr bool isVector = S::rank == 1;

protected:
  using Side =
      std::conditional_t<isVector, BroadcastOperand<T, S>, TensorOperand<T, S>>;

public:
#define COSTATE_TENSOR_OPERATOR(Result, symbol, op, Condition)                 \
  friend TensorExpr<Result, S> operator symbol(Side a, Side b)                 \
    requires(Condition)                                                        \
  {                                                                            \
    return detail::mapped<Result, S>(Op::op, a, b);                            \
  }
  COSTATE_TENSOR_OPERATOR(T, +, Add, isNumber<T>)
  COSTATE_TENSOR_OPERATOR(T, -, Sub, isNumber<T>)
  COSTATE_TENSOR_OPERATOR(T, *, Mul, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(T, /, Div, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(T, %, Rem, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(T, &, And, std::is_integral_v<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(T, |, Or, std::is_integral_v<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(T, ^, Xor, std::is_integral_v<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(T, <<, Shl, isInteger(dtypeOf<T>) && isVector)
  COSTATE_TENSOR_OPERATOR(T, >>, Shr, isInteger(dtypeOf<T>) && isVector)
  COSTATE_TENSOR_OPERATOR(bool, <, Lt, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(bool, <=, Le, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(bool, >, Gt, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(bool, >=, Ge, isNumber<T> &&isVector)
  COSTATE_TENSOR_OPERATOR(bool, ==, Eq, isVector)
  COSTATE_TENSOR_OPERATOR(bool, !=, Ne, isVector)
#undef COSTATE_TENSOR_OPERATOR

  friend TensorExpr<T, S> operator*(TensorOperand<T, S> a, Operand<T> b)
    requires(isNumber<T> && !isVector)
  {
    return detail::mapped<T, S>(Op::Mul, a,
                                {detail::repeated<S>(b.value), b.loc});
  }
  friend TensorExpr<T, S> operator*(Operand<T> a, TensorOperand<T, S> b)
    requires(isNumber<T> && !isVector)
  {
    return detail::mapped<T, S>(Op::Mul, {detail::repeated<S>(a.value), a.loc},
                                b);
  }
  friend TensorExpr<T, S> operator/(TensorOperand<T, S> a, Operand<T> b)
    requires(isNumber<T> && !isVector)
  {
    return detail::mapped<T, S>(Op::Div, a,
                                {detail::repeated<S>(b.value), b.loc});
  }
  /// The product of two matrices, or of a matrix and a vector.
  template <class B>
    requires(Factor<T, S, B>)
  friend auto operator*(TensorOperand<T, S> a, const B &b) {
    return detail::product<T, S, ShapeOf<B>>(
        a, {detail::componentsAs<T, ShapeOf<B>>(b, a.loc), a.loc});
  }

  friend TensorExpr<T, S> operator-(TensorOperand<T, S> a)
    requires(isNumber<T>)
  {
    return detail::mapped<T, S>(Op::Neg, a);
  }
  friend TensorExpr<T, S> operator+(TensorOperand<T, S> a)
    requires(isNumber<T>)
  {
    return TensorExpr<T, S>(a.all);
  }
  friend TensorExpr<T, S> operator~(TensorOperand<T, S> a)
    requires(std::is_integral_v<T> && isVector)
  {
    return detail::mapped<T, S>(Op::Not, a);
  }
};

} // namespace detail
} // namespace costate
