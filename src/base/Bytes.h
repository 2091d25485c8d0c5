#pragma once
/// Numbers of bytes as users write them.

#include "base/Result.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace costate {

/// `512`, `64k`, `1.5G`: bytes, or BadArgument.
inline Result<size_t> parseBytes(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  size_t at = static_cast<size_t>(end - text.c_str());
  std::string suffix = text.substr(at);
  for (char &c : suffix)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  double unit = suffix.empty()  ? 1
                : suffix == "k" ? 0x1p10
                : suffix == "m" ? 0x1p20
                : suffix == "g" ? 0x1p30
                                : 0;
  bool good = at > 0 && unit > 0 && std::isfinite(value) && value * unit >= 1 &&
              value * unit < 0x1p62;
  if (!good)
    return Failure{ErrorCode::BadArgument,
                   "`" + text +
                       "` is no number of bytes; write one, with suffix k, m "
                       "or g if you like, such as 512m"};
  return static_cast<size_t>(value * unit);
}

} // namespace costate
