#pragma once
/// Switches that programs need not know of.

#include <cstdlib>
#include <string>

namespace costate::api {

/// Whether `variable` is set, and not to 0.
inline bool isOn(const char *variable) {
  const char *value = std::getenv(variable);
  return value && *value && std::string(value) != "0";
}

/// The number that `variable` holds, 0 if it holds none.
inline int numberIn(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? std::atoi(value) : 0;
}

} // namespace costate::api
