#pragma once
/// Which functions are called, and which become part of the kernel.

#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace costate {

enum class Calls {
  Large, ///< where it saves time of compilation
  All,   ///< wherever it can be: for tests
  None,  ///< nowhere: to compare
};

/// What a test asks for on this thread.
inline thread_local std::optional<Calls> callsOfTest;

/// COSTATE_CALLS: `all`, `none`, or else Large.
inline Calls wantedCalls() {
  const char *value = std::getenv("COSTATE_CALLS");
  std::string_view wanted = value ? value : "";
  Calls calls = wanted == "all"    ? Calls::All
                : wanted == "none" ? Calls::None
                                   : Calls::Large;
  return callsOfTest.value_or(calls);
}

/// While it lives, kernels that this thread makes have such calls.
class WithCalls {
public:
  explicit WithCalls(Calls calls) : outer(std::exchange(callsOfTest, calls)) {}
  ~WithCalls() { callsOfTest = outer; }
  WithCalls(const WithCalls &) = delete;

private:
  std::optional<Calls> outer;
};

} // namespace costate
