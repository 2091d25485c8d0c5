#pragma once
/// Which functions are called, and which become part of the kernel.

#include "base/ChosenWord.h"

namespace costate {

enum class Calls {
  Large, ///< where it saves time of compilation
  All,   ///< wherever it can be: for tests
  None,  ///< nowhere: to compare
};

/// COSTATE_CALLS: `all`, `none`; Large if it is not set.
inline Result<Calls> chosenCalls() {
  return chosenWord("COSTATE_CALLS", Calls::Large,
                    {{"all", Calls::All}, {"none", Calls::None}});
}

/// Large where COSTATE_CALLS is wrong.
inline Calls wantedCalls() {
  Result<Calls> chosen = chosenCalls();
  return chosen ? *chosen : Calls::Large;
}

} // namespace costate
