#pragma once
/// Vectors and matrices as values of a kernel: variables (Vec, Mat), immutable
/// values (VecExpr, MatExpr), and their components.

#include "costate/detail/tensor.h"

#include <algorithm>

namespace costate {

namespace detail {

/// Which component is meant when the kernel runs: one index for each dimension.
template <class S> struct Chosen {
  std::array<Handle, size_t(S::rank)> index;

  /// Whether it is position `k` of dimension `dim`.
  Handle is(int dim, int k, Loc loc) const {
    return pure(Op::Eq, DType::Bool,
                {index[size_t(dim)],
                 constant(DType::I64, static_cast<uint64_t>(k), loc)},
                loc);
  }
};

/// The value at the position that `index` has in `dim`, else 0.
template <class T, class S, size_t N>
Handle pick(const std::array<Handle, N> &values, const Chosen<S> &chosen,
            int dim, Loc loc) {
  Handle value = constant(dtypeOf<T>, 0, loc);
  for (size_t k = N; k-- > 0;)
    value = pure(Op::Select, dtypeOf<T>,
                 {chosen.is(dim, int(k), loc), values[k], value}, loc);
  return value;
}

template <class T, class S>
Handle pick(const Handles<S> &all, const Chosen<S> &chosen, Loc loc) {
  if constexpr (S::rank == 1) {
    return pick<T>(all, chosen, 0, loc);
  } else {
    std::array<Handle, size_t(S::extent[0])> rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::array<Handle, size_t(S::extent[1])> row;
      std::copy_n(all.begin() + int(i * row.size()), row.size(), row.begin());
      rows[i] = pick<T>(row, chosen, 1, loc);
    }
    return pick<T>(rows, chosen, 0, loc);
  }
}

template <class I>
concept ComponentIndex = std::integral<I> || (Traced<I> && IndexFor<I>);

/// One index for each dimension of a matrix, if one of them is traced.
template <class S, ComponentIndex I, ComponentIndex J>
Chosen<S> chosen(const I &i, const J &j, Loc loc) {
  return {{valueAs<int64_t>(i, loc), valueAs<int64_t>(j, loc)}};
}
template <class S, std::integral I, std::integral J>
size_t position(I i, J j, const std::source_location &place) {
  return HostComponent(i, place).below(S::extent[0]) * size_t(S::extent[1]) +
         HostComponent(j, place).below(S::extent[1]);
}

} // namespace detail

namespace detail {

/// A vector or matrix that is assigned to, as a whole and by component: a
/// variable, or a reference (`Self` is const) to an element of an array or of a
/// private one. `Self` has `component(k)`, `chosen(position, loc)` for one that
/// is known when the kernel runs, and `update(op, operand)`.
template <class Self, class T, class S>
class TensorPlace : public TensorOps<T, S> {
  static constexpr bool isReference = std::is_const_v<Self>;
  static constexpr bool isVector = S::rank == 1;

  static const Components<S> &all(const Components<S> &source) {
    return source;
  }
  static Components<S> all(const Operand<T> &same) {
    return {repeated<S>(same.value), same.loc};
  }

protected:
  using Side = typename TensorOps<T, S>::Side;

public:
#define COSTATE_ASSIGN(symbol, op, Other, Condition)                           \
  Self &operator symbol(Other source)                                          \
    requires(!isReference && isNumber<T> && Condition)                         \
  {                                                                            \
    return static_cast<Self &>(*this).update(Op::op, all(source));             \
  }                                                                            \
  Self &operator symbol(Other source) const                                    \
    requires(isReference && isNumber<T> && Condition)                          \
  {                                                                            \
    return static_cast<Self &>(*this).update(Op::op, all(source));             \
  }
  COSTATE_ASSIGN(+=, Add, Side, true)
  COSTATE_ASSIGN(-=, Sub, Side, true)
  COSTATE_ASSIGN(*=, Mul, Side, isVector)
  COSTATE_ASSIGN(/=, Div, Side, isVector)
  COSTATE_ASSIGN(*=, Mul, Operand<T>, !isVector)
  COSTATE_ASSIGN(/=, Div, Operand<T>, !isVector)
#undef COSTATE_ASSIGN

#define COSTATE_COMPONENT(function, Condition, member)                         \
  decltype(auto) function                                                      \
    requires(!isReference && isVector && Condition)                            \
  {                                                                            \
    return static_cast<Self &>(*this).member;                                  \
  }                                                                            \
  decltype(auto) function const                                                \
    requires(isVector && Condition)                                            \
  {                                                                            \
    return static_cast<const Self &>(*this).member;                            \
  }
  COSTATE_COMPONENT(operator[](HostComponent k), true,
                    component(k.below(S::count)))
  /// A component that is known when the kernel runs.
  COSTATE_COMPONENT(operator[](TracedComponent k), true,
                    chosen(Chosen<S>{{k.value}}, k.loc))
  COSTATE_COMPONENT(x(), S::count > 0, component(0))
  COSTATE_COMPONENT(y(), S::count > 1, component(1))
  COSTATE_COMPONENT(z(), S::count > 2, component(2))
  COSTATE_COMPONENT(w(), S::count > 3, component(3))
#undef COSTATE_COMPONENT

#define COSTATE_ENTRY(cv, Condition)                                           \
  template <ComponentIndex I, ComponentIndex J>                                \
    requires(Condition && !isVector)                                           \
  decltype(auto) operator()(const I &i, const J &j,                            \
                            std::source_location place =                       \
                                std::source_location::current()) cv {          \
    if constexpr (std::integral<I> && std::integral<J>)                        \
      return static_cast<Self &>(*this).component(position<S>(i, j, place));   \
    else                                                                       \
      return static_cast<Self &>(*this).chosen(detail::chosen<S>(i, j, place), \
                                               place);                         \
  }
  COSTATE_ENTRY(, !isReference)
  COSTATE_ENTRY(const, isReference)
#undef COSTATE_ENTRY
};

} // namespace detail

template <class T, class S> class LocalTensor;

/// A component of a variable, or of an element of a `Local`, known when the
/// kernel runs. There is none at positions outside: reading gives 0, assigning
/// does nothing.
template <class T, class S, bool inLocal = false>
class ComponentRef : public detail::Ops<T> {
  using Owner =
      std::conditional_t<inLocal, LocalTensor<T, S>, TensorVar<T, S> &>;

public:
  ComponentRef(Owner tensor, const detail::Chosen<S> &chosen)
      : tensor(tensor), chosen(chosen) {}
  ComponentRef(const ComponentRef &) = default;

  const ComponentRef &operator=(const ComponentRef &other) const {
    return *this = Source<T>(other);
  }
  const ComponentRef &operator=(Source<T> source) const {
    tensor.assign(chosen, source.value, source.loc);
    return *this;
  }
#define COSTATE_ASSIGN(symbol, op)                                             \
  const ComponentRef &operator symbol(Source<T> source) const                  \
    requires(detail::isNumber<T>)                                              \
  {                                                                            \
    tensor.assign(chosen,                                                      \
                  detail::pure(detail::Op::op, dtypeOf<T>,                     \
                               {value(source.loc), source.value}, source.loc), \
                  source.loc);                                                 \
    return *this;                                                              \
  }
  COSTATE_ASSIGN(+=, Add)
  COSTATE_ASSIGN(-=, Sub)
  COSTATE_ASSIGN(*=, Mul)
  COSTATE_ASSIGN(/=, Div)
#undef COSTATE_ASSIGN

  detail::Handle value(Loc loc) const {
    return detail::pick<T>(tensor.components(loc), chosen, loc);
  }

private:
  Owner tensor;
  detail::Chosen<S> chosen;
};

namespace detail {

template <class T, class S, bool inLocal>
struct TracedType<ComponentRef<T, S, inLocal>> {
  using type = T;
};

/// Assigns to the parts of a tensor what they become where the chosen one is
/// `value`.
template <class T, class S, class Assign>
void assignChosen(const Handles<S> &old, const Chosen<S> &chosen, Handle value,
                  Loc loc, const Assign &assign) {
  constexpr int columns = S::rank == 2 ? S::extent[S::rank - 1] : 1;
  for (int k = 0; k < S::count; ++k) {
    Handle here = chosen.is(0, k / columns, loc);
    if (S::rank == 2)
      here = pure(Op::And, DType::Bool, {here, chosen.is(1, k % columns, loc)},
                  loc);
    assign(size_t(k),
           pure(Op::Select, dtypeOf<T>, {here, value, old[size_t(k)]}, loc));
  }
}

} // namespace detail

/// An immutable vector or matrix. Copies are the same value.
template <class T, class S> class TensorExpr : public detail::TensorOps<T, S> {
public:
  TensorExpr() = default; ///< must be assigned before it is used
  explicit TensorExpr(const detail::Handles<S> &all) : all(all) {}
  TensorExpr(const TensorExpr &) = default;
  /// Not to a result: that is no place which keeps it.
  TensorExpr &operator=(const TensorExpr &) & = default;
  template <detail::TensorFor<T, S> A>
    requires(!std::is_same_v<A, TensorExpr>)
  TensorExpr(const A &source,
             std::source_location place = std::source_location::current())
      : all(detail::componentsAs<T, S>(source, place)) {}
  /// Of its components, row after row.
  template <class... A>
    requires(S::count > 1 && sizeof...(A) + 1 == S::count &&
             (detail::SourceFor<A, T> && ...))
  TensorExpr(Source<T> first, const A &...others)
      : all{first.value, detail::valueAs<T>(others, first.loc)...} {}
  /// All components are the same.
  explicit TensorExpr(Source<T> same) : all(detail::repeated<S>(same.value)) {}

  detail::Handles<S> components(Loc) const { return all; }

  Expr<T> operator[](HostComponent k) const
    requires(S::rank == 1)
  {
    return Expr<T>(all[k.below(S::count)]);
  }
  /// A component that is known when the kernel runs; 0 if there is none.
  Expr<T> operator[](TracedComponent k) const
    requires(S::rank == 1)
  {
    return Expr<T>(detail::pick<T>(all, detail::Chosen<S>{{k.value}}, k.loc));
  }
  template <detail::ComponentIndex I, detail::ComponentIndex J>
    requires(S::rank == 2)
  Expr<T> operator()(
      const I &i, const J &j,
      std::source_location place = std::source_location::current()) const {
    if constexpr (std::integral<I> && std::integral<J>)
      return Expr<T>(all[detail::position<S>(i, j, place)]);
    else
      return Expr<T>(
          detail::pick<T>(all, detail::chosen<S>(i, j, place), place));
  }

#define COSTATE_COMPONENT(name, k)                                             \
  Expr<T> name() const                                                         \
    requires(S::rank == 1 && S::count > k)                                     \
  {                                                                            \
    return Expr<T>(all[k]);                                                    \
  }
  COSTATE_COMPONENT(x, 0)
  COSTATE_COMPONENT(y, 1)
  COSTATE_COMPONENT(z, 2)
  COSTATE_COMPONENT(w, 3)
#undef COSTATE_COMPONENT

private:
  detail::Handles<S> all;
};

/// A vector or matrix that the caller passes.
template <class T, class S>
class Scalar<TensorVar<T, S>> : public TensorExpr<T, S> {
public:
  explicit Scalar(const TensorExpr<T, S> &value) : TensorExpr<T, S>(value) {}
};

/// A vector or matrix variable. Initialising or copying makes a new one.
template <class T, class S>
class TensorVar : public detail::TensorPlace<TensorVar<T, S>, T, S> {
  using Base = detail::TensorPlace<TensorVar, T, S>;
  using Place = std::source_location;
  using Parts = std::make_index_sequence<size_t(S::count)>;

public:
  /// Starts with 0.
  TensorVar(Place place = Place::current())
      : TensorVar(detail::repeated<S>(detail::constant(dtypeOf<T>, 0, place)),
                  place, Parts()) {}
  template <detail::TensorFor<T, S> A>
    requires(!std::is_same_v<A, TensorVar>)
  TensorVar(const A &source, Place place = Place::current())
      : TensorVar(detail::componentsAs<T, S>(source, place), place, Parts()) {}
  TensorVar(const TensorVar &other, Place place = Place::current())
      : TensorVar(other.components(place), place, Parts()) {}
  /// Of its components, row after row.
  template <class... A>
    requires(S::count > 1 && sizeof...(A) + 1 == S::count &&
             (detail::SourceFor<A, T> && ...))
  TensorVar(Source<T> first, const A &...others)
      : TensorVar({first.value, detail::valueAs<T>(others, first.loc)...},
                  first.loc, Parts()) {}
  /// All components start with the same value.
  explicit TensorVar(Source<T> same)
      : TensorVar(detail::repeated<S>(same.value), same.loc, Parts()) {}

  // `volatile` as in Var.
  TensorVar &operator=(const volatile TensorVar &other) {
    return *this = TensorSource<T, S>(const_cast<const TensorVar &>(other));
  }
  TensorVar &operator=(TensorSource<T, S> source) {
    for (size_t k = 0; k < parts.size(); ++k)
      parts[k].assign(source.all[k], source.loc);
    return *this;
  }

  detail::Handles<S> components(Loc loc) const {
    detail::Handles<S> all;
    for (size_t k = 0; k < parts.size(); ++k)
      all[k] = parts[k].value(loc);
    return all;
  }

  using Base::operator();
  template <detail::ComponentIndex I, detail::ComponentIndex J>
    requires(S::rank == 2)
  Expr<T> operator()(const I &i, const J &j,
                     Place place = Place::current()) const {
    return TensorExpr<T, S>(components(place))(i, j, place);
  }

private:
  friend class ComponentRef<T, S>;
  friend Base;

  Var<T> &component(size_t k) { return parts[k]; }
  const Var<T> &component(size_t k) const { return parts[k]; }
  ComponentRef<T, S> chosen(const detail::Chosen<S> &position, Loc) {
    return {*this, position};
  }
  Expr<T> chosen(const detail::Chosen<S> &position, Loc loc) const {
    return Expr<T>(detail::pick<T>(components(loc), position, loc));
  }

  template <size_t... k>
  TensorVar(const detail::Handles<S> &start, Loc loc, std::index_sequence<k...>)
      : parts{Var<T>(start[k], loc)...} {}

  TensorVar &update(detail::Op op, const detail::Components<S> &other) {
    for (size_t k = 0; k < parts.size(); ++k)
      parts[k].assign(detail::pure(op, dtypeOf<T>,
                                   {parts[k].value(other.loc), other.all[k]},
                                   other.loc),
                      other.loc);
    return *this;
  }

  /// The component that is chosen becomes `value`, if there is one.
  void assign(const detail::Chosen<S> &chosen, detail::Handle value, Loc loc) {
    detail::assignChosen<T>(
        components(loc), chosen, value, loc,
        [&](size_t k, detail::Handle next) { parts[k].assign(next, loc); });
  }

  std::array<Var<T>, size_t(S::count)> parts;
};

} // namespace costate
