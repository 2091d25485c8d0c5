#pragma once
/// Messages of a kernel: print and assert.

#include "costate/expr.h"

#include <string_view>

namespace costate {

namespace detail {

/// A text, and the place where it stands.
struct MessageText {
  MessageText(const char *text,
              std::source_location place = std::source_location::current())
      : text(text), loc(place) {}
  std::string_view text;
  Loc loc;
};

template <class A>
concept Printable = Traced<A> || HostNumber<A>;

template <Printable A> Handle printed(const A &value, Loc loc) {
  if constexpr (Traced<A>)
    return valueAs<TypeOf<A>>(value, loc);
  else
    return valueAs<A>(value, loc);
}

} // namespace detail

/// Prints a line to the standard output: the kernel, the place in its source,
/// the iteration, and `text`, in which each `{}` stands for the next value (at
/// most 8; `{{` and `}}` for braces). Lines of different iterations come in any
/// order; devices other than CPUs print at the end of the range, and the first
/// 16,384 lines only. A gradient prints nothing, its primal has.
template <detail::Printable... A>
void print(detail::MessageText text, const A &...values) {
  // One more: there are no arrays of no elements.
  detail::Handle handles[] = {detail::printed(values, text.loc)...,
                              detail::Handle()};
  detail::print(text.text, {handles, sizeof...(A)}, text.loc);
}

/// In kernels with `debug`: ends the launch with an error of this text, which
/// is like that of `print` (at most 4 values), unless `condition` holds.
/// Elsewhere it does nothing. Gradients do not look again.
template <detail::Printable... A>
void assert_(Operand<bool> condition, std::string_view text,
             const A &...values) {
  detail::Handle handles[] = {detail::printed(values, condition.loc)...,
                              detail::Handle()};
  detail::check(condition.value, text, {handles, sizeof...(A)}, condition.loc);
}
inline void assert_(Operand<bool> condition) {
  assert_(condition, "what the kernel asserts does not hold");
}

} // namespace costate
