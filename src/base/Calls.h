#pragma once
/// Which functions are called, and which become part of the kernel.

#include "base/Result.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace costate {

enum class Calls {
  Large, ///< where it saves time of compilation
  All,   ///< wherever it can be: for tests
  None,  ///< nowhere: to compare
};

/// COSTATE_CALLS: `all`, `none`; Large if it is not set.
inline Result<Calls> chosenCalls() {
  const char *value = std::getenv("COSTATE_CALLS");
  std::string_view chosen = value ? value : "";
  if (chosen == "all")
    return Calls::All;
  if (chosen == "none")
    return Calls::None;
  if (chosen.empty())
    return Calls::Large;
  return Failure{ErrorCode::BadArgument, "COSTATE_CALLS is `" +
                                             std::string(chosen) +
                                             "`; it must be `all` or `none`"};
}

/// Large where COSTATE_CALLS is wrong.
inline Calls wantedCalls() {
  Result<Calls> chosen = chosenCalls();
  return chosen ? *chosen : Calls::Large;
}

} // namespace costate
