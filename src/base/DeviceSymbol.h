#pragma once
/// Names of kernels in the code of a device.

#include <string>
#include <string_view>

namespace costate {

/// The kernel of the device function `name`. An identifier of PTX, and another
/// one for every name: letters, digits and `_` stay, the rest becomes `$xx`.
inline std::string deviceSymbol(std::string_view name) {
  constexpr const char *digits = "0123456789abcdef";
  std::string symbol;
  for (unsigned char c : name) {
    bool isLetter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    bool isDigit = c >= '0' && c <= '9' && !symbol.empty();
    if (isLetter || isDigit || c == '_')
      symbol += static_cast<char>(c);
    else
      symbol += {'$', digits[c >> 4], digits[c & 15]};
  }
  return symbol + "$kernel";
}

} // namespace costate
