#pragma once
/// Launches that are kept, to be repeated for less than they cost one by one.

#include "costate/detail/shared.h"

#include <cstddef>

namespace costate {

namespace detail {
struct GraphImpl;
}

/// What `Device::capture` has kept; copies share it. Arrays and kernels stay
/// alive as long as it does. Using one that has been moved from is
/// Error(BadArgument).
class Graph {
public:
  /// Of nothing.
  Graph();
  explicit Graph(std::shared_ptr<detail::GraphImpl> impl)
      : impl(std::move(impl)) {}

  /// Launches everything once more, in order, after what the device has been
  /// asked to do so far: with what arrays hold by then, and with scalars and
  /// shapes as they were captured. Throws what the launches would throw.
  /// Error(CannotCapture) while this thread captures or records a `Tape`.
  void replay() const;

  /// The number of launches and fills.
  size_t size() const;

private:
  static constexpr char empty[] =
      "this Graph has been moved from; use the one that it was moved to, or "
      "assign another";
  detail::Shared<detail::GraphImpl, empty> impl;
};

} // namespace costate
