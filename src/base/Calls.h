#pragma once
/// Which functions are called, and which become part of the kernel.

#include <cstdlib>
#include <string_view>

namespace costate {

enum class Calls {
  Large, ///< where it saves time of compilation
  All,   ///< wherever it can be: for tests
  None,  ///< nowhere: to compare
};

/// COSTATE_CALLS: `all`, `none`, or else Large.
inline Calls wantedCalls() {
  const char *value = std::getenv("COSTATE_CALLS");
  std::string_view wanted = value ? value : "";
  return wanted == "all"    ? Calls::All
         : wanted == "none" ? Calls::None
                            : Calls::Large;
}

} // namespace costate
