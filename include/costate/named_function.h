#pragma once
/// Functions with a name.

#include "costate/array_ref.h"

#include <memory>

namespace costate {

namespace detail {

/// See function().
template <class F> class NamedFunction {
public:
  NamedFunction(const char *name, F body, Loc loc)
      : name(name), body(std::move(body)), loc(loc),
        id(std::make_shared<char>()) {}

  template <class... A> decltype(auto) operator()(A &&...arguments) const {
    struct Call {
      Call(const NamedFunction &f) { enterFunction(f.id.get(), f.name, f.loc); }
      Call(const Call &) = delete;
      ~Call() { leaveFunction(); }
    } call(*this);
    return body(std::forward<A>(arguments)...);
  }

private:
  const char *name;
  F body;
  Loc loc;
  std::shared_ptr<char> id; ///< that copies share
};

} // namespace detail

/// A function that kernels call, with a name for errors. Any C++ function of
/// traced values does the same; this one says so if it calls itself.
///
///     auto gauss = function("gauss", [](Expr<double> x, Expr<double> s) {
///       return exp(-x * x / (2.0 * s * s));
///     });
template <class F>
detail::NamedFunction<F>
function(const char *name, F body,
         std::source_location place = std::source_location::current()) {
  return detail::NamedFunction<F>(name, std::move(body), place);
}

} // namespace costate
