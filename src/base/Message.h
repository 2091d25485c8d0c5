#pragma once
/// Texts with values in them.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace costate {

/// The values that one message of a kernel may have.
inline constexpr size_t mostPrinted = 8, mostAsserted = 4;

/// `text` with `value(kind)` in the place of each `{kind}`, where kind is one
/// letter, or 0 in `{}`. `{{` and `}}` stand for braces, which become `open`
/// and `close`. Nothing if braces do not match.
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
    } else if (rest.starts_with("{}")) {
      result += value('\0');
      ++at;
    } else if (rest.size() > 2 && rest[0] == '{' && rest[2] == '}') {
      result += value(rest[1]);
      at += 2;
    } else if (rest[0] == '{' || rest[0] == '}') {
      return std::nullopt;
    } else {
      result += rest[0];
    }
  }
  return result;
}

} // namespace costate
