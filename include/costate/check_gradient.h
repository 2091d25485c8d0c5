#pragma once
/// Is the gradient of a kernel right here?

#include "costate/kernel.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace costate {

/// One directional derivative of a kernel, computed in three ways: the inner
/// product of a random cotangent of its outputs with the change of its outputs
/// along a random unit direction of its inputs. And some entries of the
/// gradient of that inner product, computed in the same ways.
struct GradientCheck {
  bool ok = false; ///< all errors are within their tolerances
  std::string kernel;
  double reverse = 0;          ///< by grad()
  double forward = 0;          ///< by jvp()
  double difference = 0;       ///< by central differences
  double step = 0;             ///< the step of these that fitted best
  double forward_error = 0;    ///< of reverse against forward, relative
  double difference_error = 0; ///< of reverse against differences, relative
  double forward_tolerance = 0;
  double difference_tolerance = 0;
  /// Else the outputs are so large that rounding hides the slope, and
  /// differences say nothing.
  bool differences_tell = true;

  struct Entry {
    int argument = 0;  ///< counted from 1, and as launch_with counts
    std::string array; ///< in the words of messages: `argument 2`
    std::vector<int64_t> index;
    double reverse = 0, forward = 0, difference = 0;
    double forward_error = 0, difference_error = 0;
  };
  /// The entry with the largest error of those that were looked at: all, or a
  /// sample, and the one that a search finds if the directional derivatives
  /// differ.
  Entry worst;
  size_t entries = 0;     ///< that were looked at
  size_t all_entries = 0; ///< of the gradient

  explicit operator bool() const { return ok; }
};

std::ostream &operator<<(std::ostream &out, const GradientCheck &check);

namespace detail {
GradientCheck check_gradient(const Kernel &kernel,
                             std::span<const ArgumentValue> arguments);
}

/// Checks the gradient of `kernel` at the contents of `arguments`, on copies:
/// the arguments themselves are not touched. All floating-point arrays take
/// part. Throws what launches throw.
template <class... A>
GradientCheck check_gradient(const Kernel &kernel, const A &...arguments) {
  return detail::withArguments(
      [&](auto values) { return detail::check_gradient(kernel, values); },
      arguments...);
}

} // namespace costate
