#pragma once
/// From a C++ lambda to a kernel.

#include "costate/array_ref.h"
#include "costate/tensor.h"

#include <memory>
#include <string>
#include <tuple>

namespace costate::detail {

/// A traced kernel, or why it is none; defined in src/syntax/Trace.h.
struct TracedKernel;

/// While it lives, this thread traces into it.
class Session {
public:
  Session(const char *name, Loc loc);
  Session(const Session &) = delete;
  ~Session();

  /// What follows is, or belongs to, the next parameter of the function; that
  /// is a `name`, or a number or an array.
  void parameter(const std::string &name = "");
  /// `extents`: those of the array that are known, -1 elsewhere.
  Handle array(DType type, int rank, const ElementForm &form = {},
               std::vector<int64_t> extents = {});
  Handle scalar(DType type);
  std::shared_ptr<TracedKernel> finish();

private:
  struct State;
  std::unique_ptr<State> state;
};

template <class P> struct Parameter {
  static_assert(sizeof(P) == 0,
                "the parameters of a kernel are ArrayRef<T, N> and Scalar<T>");
};
template <class T, int N, Layout L> struct Parameter<ArrayRef<T, N, L>> {
  using Elements = ElementsOf<T, N, L>;
  static ArrayRef<T, N, L> make(Session &session) {
    session.parameter();
    typename Elements::Arrays arrays;
    for (size_t k = 0; k < arrays.size(); ++k)
      arrays[k] = session.array(Elements::types[k], Elements::rank,
                                Elements::form(Elements::types[k]));
    return ArrayRef<T, N, L>(arrays);
  }
};
/// Makes a number, vector, matrix or struct of what `source.scalar(type)`
/// gives.
template <class C> struct OfScalars;
template <class T> struct OfScalars<Var<T>> {
  template <class Source> static Var<T> make(Source &source) {
    return Expr<T>(source.scalar(dtypeOf<T>));
  }
};
template <class T, class S> struct OfScalars<TensorVar<T, S>> {
  template <class Source> static TensorExpr<T, S> make(Source &source) {
    Handles<S> all;
    for (Handle &one : all)
      one = source.scalar(dtypeOf<T>);
    return TensorExpr<T, S>(all);
  }
};

template <class T> struct Parameter<Scalar<T>> {
  static Scalar<T> make(Session &session) {
    if constexpr (HostNumber<T>) {
      session.parameter();
      return Scalar<T>(session.scalar(dtypeOf<T>));
    } else {
      session.parameter(FormOf<T>::name());
      return Scalar<T>(OfScalars<T>::make(session));
    }
  }
};

/// The parameter types of a function, of a lambda without `auto`.
template <class F> struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... P> struct Signature<R (*)(P...)> {
  using Parameters = std::tuple<std::remove_cvref_t<P>...>;
};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R (*)(P...)> {};

template <class F, class... P>
void callWith(Session &session, F &f, std::tuple<P...> *) {
  // Braces: arguments are made from left to right.
  std::apply(f, std::tuple<P...>{Parameter<P>::make(session)...});
}

/// Calls `f` once with the arguments of a new kernel and returns what it
/// recorded. Mistakes in the kernel are kept in the result; what `f` throws
/// passes through.
template <class F>
std::shared_ptr<TracedKernel> trace(const char *name, F &&f, Loc loc) {
  using Parameters = typename Signature<std::decay_t<F>>::Parameters;
  Session session(name, loc);
  callWith(session, f, static_cast<Parameters *>(nullptr));
  return session.finish();
}

} // namespace costate::detail
