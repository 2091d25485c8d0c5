#pragma once
/// Texts with values in them.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace costate {

/// The values that one message of a kernel may have.
inline constexpr size_t mostPrinted = 8, mostAsserted = 4;

/// A text that begins with it is printed as it is: no kernel, place and
/// work item in front, and no end of the line after.
inline constexpr char plainText = '\x02';

/// Whether `form` is how a number is written: nothing, or a colon and what
/// `printf` has between `%` and the size of the argument, and one of
/// `deEfFgGxX`, such as `:8.3f`; without one of them as always.
inline bool isForm(std::string_view form) {
  if (form.empty())
    return true;
  auto skip = [&](std::string_view some, size_t most) {
    while (most-- && !form.empty() && some.find(form[0]) != some.npos)
      form.remove_prefix(1);
  };
  constexpr std::string_view digits = "0123456789";
  skip(":", 1);
  skip("-+ 0", 4);
  skip(digits, 2);
  if (form.starts_with('.')) {
    skip(".", 1);
    skip(digits, 2);
  }
  skip("deEfFgGxX", 1);
  return form.empty();
}

/// The kind of a place for an element: its two values are the number of an
/// argument, and that of an element of it, row-major.
inline constexpr char elementKind = 'e';

/// `text` with `value(kind, form)` in the place of each `{kind:form}`, where
/// kind is one letter or 0, and the form with its colon may be missing. `{{`
/// and
/// `}}` stand for braces, which become `open` and `close`. Nothing if braces do
/// not match.
template <class F>
std::optional<std::string> filled(std::string_view text, F &&value,
                                  std::string_view open = "{",
                                  std::string_view close = "}") {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string_view rest = text.substr(at);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      result += rest[0] == '{' ? open : close;
      ++at;
    } else if (rest[0] == '{') {
      size_t end = rest.find('}');
      std::string_view form = rest.substr(1, end == rest.npos ? end : end - 1);
      char kind = form.empty() || form[0] == ':' ? '\0' : form[0];
      form.remove_prefix(kind ? 1 : 0);
      if (end == rest.npos || !(form.empty() || form[0] == ':') ||
          !isForm(form))
        return std::nullopt;
      result += value(kind, form);
      at += end;
    } else if (rest[0] == '}') {
      return std::nullopt;
    } else {
      result += rest[0];
    }
  }
  return result;
}

} // namespace costate
