#pragma once
/// From results to exceptions: the only place where they start.

#include "base/Result.h"

namespace costate::api {

[[noreturn]] inline void raise(const Failure &failure) {
  throw Error(failure.code, failure.text);
}
[[noreturn]] inline void raise(ErrorCode code, const std::string &text) {
  throw Error(code, text);
}

template <class T> T checked(Result<T> result) {
  if (!result)
    raise(result.error());
  return std::move(*result);
}
inline void checked(Result<> result) {
  if (!result)
    raise(result.error());
}

} // namespace costate::api
