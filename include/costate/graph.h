#pragma once
/// Launches that are kept, to be repeated for less than they cost one by one.

#include <cstddef>
#include <memory>

namespace costate {

namespace detail {
struct GraphImpl;
}

/// What `Device::capture` has kept; copies share it. Arrays and kernels stay
/// alive as long as it does.
class Graph {
public:
  /// Of nothing.
  Graph() = default;
  explicit Graph(std::shared_ptr<detail::GraphImpl> impl)
      : impl(std::move(impl)) {}

  /// Launches everything once more, in order, behind what the device has been
  /// asked to do so far: with what arrays hold by then, and with scalars and
  /// shapes as they were captured. Throws what the launches would throw.
  /// Error(CannotCapture) while this thread captures or records a `Tape`.
  void replay() const;

  /// The number of launches and fills.
  size_t size() const;

private:
  std::shared_ptr<detail::GraphImpl> impl;
};

} // namespace costate
