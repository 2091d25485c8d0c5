#pragma once
/// Tables of constants that code for Vulkan reads from memory. A SPIR-V module
/// carries them as an OpString: a mark, and two digits for each byte.

#include <optional>
#include <string>
#include <string_view>

namespace costate {

inline constexpr std::string_view vulkanTablesMark = "costate tables ";

inline std::string vulkanTablesText(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(vulkanTablesMark);
  for (char byte : bytes) {
    auto value = static_cast<unsigned char>(byte);
    text += {digits[value / 16], digits[value % 16]};
  }
  return text;
}

/// The bytes; none if `text` is some other string.
inline std::optional<std::string> vulkanTables(std::string_view text) {
  if (!text.starts_with(vulkanTablesMark))
    return std::nullopt;
  text.remove_prefix(vulkanTablesMark.size());
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2)
    bytes += static_cast<char>(16 * digit(text[at]) + digit(text[at + 1]));
  return bytes;
}

} // namespace costate
