#pragma once
/// Functions with derivatives of their own.

#include "costate/trace.h"

namespace costate {

namespace detail {

template <class P> struct ExprType {
  static_assert(sizeof(P) == 0,
                "the parameters of a custom derivative are Expr<T>, or auto");
};
template <class T> struct ExprType<Expr<T>> {
  using type = T;
};

/// The element type that a generic function gets for an argument of type A.
template <class A> struct GenericType {
  using type = A;
};
template <Traced A> struct GenericType<A> {
  using type = TypeOf<A>;
};

template <class... T> struct Types {};

/// The types of the parameters of F, called with `A...`.
template <class F, class... A> struct ParametersOf {
  using type = Types<typename GenericType<A>::type...>;
};
template <class Tuple> struct ExprTypes;
template <class... P> struct ExprTypes<std::tuple<P...>> {
  using type = Types<typename ExprType<P>::type...>;
};
template <class F, class... A>
  requires requires { &F::operator(); }
struct ParametersOf<F, A...> {
  using type = typename ExprTypes<typename Signature<F>::Parameters>::type;
};

template <class P>
concept TupleLike = requires { std::tuple_size<P>::value; };

/// How many of the first `n` types are floats.
template <class... T> constexpr size_t floatsBefore(size_t n) {
  constexpr bool isFloat[] = {FloatElement<T>...};
  size_t count = 0;
  for (size_t k = 0; k < n; ++k)
    count += isFloat[k];
  return count;
}

template <class P> auto asTuple(P partials) {
  if constexpr (TupleLike<P>)
    return partials;
  else
    return std::tuple<P>(std::move(partials));
}

} // namespace detail

/// A function of traced values and its partial derivatives; see
/// custom_derivative().
template <class F, class G> class CustomDerivative {
public:
  CustomDerivative(F function, G partials, Loc loc)
      : function(std::move(function)), partials(std::move(partials)), loc(loc) {
  }

  /// `arguments`: traced values, or numbers.
  template <class... A> auto operator()(const A &...arguments) const {
    return start(typename detail::ParametersOf<F, A...>::type(), arguments...);
  }

private:
  template <class... T, class... A>
  auto start(detail::Types<T...> types, const A &...arguments) const {
    static_assert(sizeof...(T) == sizeof...(A),
                  "a custom derivative is called with one argument for each "
                  "parameter");
    static_assert(sizeof...(A) > 0, "a custom derivative has arguments");
    static_assert((detail::SourceFor<A, T> && ...),
                  "an argument does not convert to the type of its parameter");
    const detail::Handle inputs[] = {detail::valueAs<T>(arguments, loc)...};
    return call(types, inputs, std::index_sequence_for<T...>());
  }

  template <class... T, size_t... k>
  auto call(detail::Types<T...> types, std::span<const detail::Handle> inputs,
            std::index_sequence<k...>) const {
    constexpr size_t arity = sizeof...(T);
    detail::Handle handles[arity + 1];
    detail::beginCustom(inputs, handles, loc);
    auto result = function(Expr<T>(handles[k])...);
    using R = detail::TypeOf<decltype(result)>;
    static_assert(FloatElement<R>,
                  "a custom derivative computes a float, double or f16");
    detail::beginPartials(detail::valueAs<R>(result, loc), handles, loc);
    auto all = detail::asTuple(
        partials(Expr<T>(handles[k])..., Expr<R>(handles[arity])));
    return Expr<R>(finish<R>(types, all, std::index_sequence<k...>()));
  }

  template <class R, class... T, class P, size_t... k>
  detail::Handle finish(detail::Types<T...>, const P &all,
                        std::index_sequence<k...>) const {
    constexpr size_t count = detail::floatsBefore<T...>(sizeof...(T));
    static_assert(std::tuple_size_v<P> == count,
                  "the second function of a custom derivative returns one "
                  "partial derivative for each float, double or f16 argument");
    detail::Handle handles[count + 1];
    (append<R, T, detail::floatsBefore<T...>(k)>(all, handles), ...);
    return detail::endCustom(std::span(handles, count), loc);
  }

  template <class R, class T, size_t position, class P>
  void append([[maybe_unused]] const P &all,
              [[maybe_unused]] detail::Handle *handles) const {
    if constexpr (FloatElement<T>) {
      static_assert(detail::SourceFor<std::tuple_element_t<position, P>, R>,
                    "a partial derivative does not convert to the type of the "
                    "result");
      handles[position] = detail::valueAs<R>(std::get<position>(all), loc);
    }
  }

  F function;
  G partials;
  Loc loc;
};

/// A function for kernels whose derivative is given instead of derived.
///
///     auto root = custom_derivative(
///         [](Expr<double> a) {
///           Var<double> r = 1.0;
///           WHILE (abs(r * r - a) > 1e-15 * a) { r = 0.5 * (r + a / r); }
///           return r;
///         },
///         [](Expr<double> a, Expr<double> r) { return 0.5 / r; });
///     ...
///     y(i) = root(x(i));
///
/// `function` takes `Expr`s and returns a float or double; it may loop and
/// branch, and nothing of it is saved or differentiated. `partials` takes the
/// same arguments and the result, and returns the partial derivative by each
/// argument that is a float or double, in the type of the result: one value, or
/// a tuple. It is straight code, which is differentiated for derivatives of
/// higher order. Both know their arguments only: no arrays, no values from
/// outside.
template <class F, class G>
CustomDerivative<F, G> custom_derivative(
    F function, G partials,
    std::source_location place = std::source_location::current()) {
  return CustomDerivative<F, G>(std::move(function), std::move(partials),
                                place);
}

} // namespace costate
