#pragma once
/// Failure as a value, for every layer below the public API.

#include "costate/error.h"

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace costate {

struct Failure {
  ErrorCode code;
  std::string text;
};

/// A `T`, or the reason why there is none.
template <class T = void> class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Failure failure) : failure(std::move(failure)) {}

  bool ok() const { return value.has_value(); }
  explicit operator bool() const { return ok(); }
  T &operator*() {
    assert(ok());
    return *value;
  }
  T *operator->() {
    assert(ok());
    return &*value;
  }
  const Failure &error() const {
    assert(!ok());
    return failure;
  }

private:
  std::optional<T> value;
  Failure failure{ErrorCode::Internal, ""};
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Failure failure) : failure(std::move(failure)) {}

  bool ok() const { return !failure; }
  explicit operator bool() const { return ok(); }
  const Failure &error() const {
    assert(!ok());
    return *failure;
  }

private:
  std::optional<Failure> failure;
};

} // namespace costate
