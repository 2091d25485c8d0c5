#pragma once
/// Messages of a kernel: print and assert.

#include "costate/detail/tensor.h"

#include <string>
#include <string_view>
#include <vector>

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
concept Printable = Traced<A> || HostNumber<A> || Tensor<A>;

/// A text and its values; of a vector or matrix all components, in brackets.
class Message {
public:
  template <Printable... A>
  Message(std::string_view format, [[maybe_unused]] Loc loc,
          const A &...values) {
    (append(format, values, loc), ...);
    text += format;
  }
  std::string text;
  std::vector<Handle> values;

private:
  template <class A>
  void append(std::string_view &rest, const A &value, Loc loc) {
    std::string one = nextOf(rest);
    if constexpr (Tensor<A>) {
      auto all = value.components(loc);
      values.insert(values.end(), all.begin(), all.end());
      if (!one.empty())
        one = listOf<ShapeOf<A>>(one);
    } else if constexpr (Traced<A>) {
      values.push_back(valueAs<TypeOf<A>>(value, loc));
    } else {
      values.push_back(valueAs<A>(value, loc));
    }
    text += one;
  }

  /// Moves the text up to its next `{}` or `{:8.3f}` here, and takes that.
  std::string nextOf(std::string_view &rest) {
    size_t at = 0;
    auto isTwice = [&] {
      std::string_view two = rest.substr(at, 2);
      return two == "{{" || two == "}}";
    };
    while (at < rest.size() && (rest[at] != '{' || isTwice()))
      at += isTwice() ? 2 : 1;
    size_t end = rest.find('}', at);
    end = end == rest.npos ? at : end + 1;
    std::string one(rest.substr(at, end - at));
    text += rest.substr(0, at);
    rest.remove_prefix(end);
    return one;
  }

  template <class S> static std::string listOf(const std::string &one) {
    std::string row = "[";
    for (int k = 0; k < S::extent[S::rank - 1]; ++k)
      row += (k ? ", " : "") + one;
    row += "]";
    if (S::rank == 1)
      return row;
    std::string rows = "[";
    for (int i = 0; i < S::extent[0]; ++i)
      rows += (i ? ", " : "") + row;
    return rows + "]";
  }
};

} // namespace detail

/// Prints a line to the standard output: the kernel, the place in its source,
/// the work item, and `text`, in which each `{}` stands for the next value, a
/// number, vector or matrix (at most 8 numbers; `{{` and `}}` for braces).
/// Lines of different work items come in any order; devices other than CPUs
/// print at the end of the range, and the first 16,384 lines only. A gradient
/// prints nothing, its primal has; with `initial_state` it runs the primal,
/// which prints.
template <detail::Printable... A>
void print(detail::MessageText text, const A &...values) {
  detail::Message message(text.text, text.loc, values...);
  detail::print(message.text, message.values, text.loc);
}

/// In kernels with `debug`: ends the launch with an error of this text, which
/// is like that of `print` (at most 4 numbers), unless `condition` holds.
/// Elsewhere it does nothing. Gradients do not look again.
template <detail::Printable... A>
void assert_(Operand<bool> condition, std::string_view text,
             const A &...values) {
  detail::Message message(text, condition.loc, values...);
  detail::check(condition.value, message.text, message.values, condition.loc);
}
inline void assert_(Operand<bool> condition) {
  assert_(condition, "what the kernel asserts does not hold");
}

} // namespace costate
