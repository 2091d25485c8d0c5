#pragma once
/// Is the gradient of a kernel right here?

#include "costate/kernel.h"

#include <iosfwd>
#include <string>

namespace costate {

/// One directional derivative of a kernel, computed in three ways: the inner
/// product of a random cotangent of its outputs with the change of its outputs
/// along a random unit direction of its inputs.
struct GradientCheck {
  bool ok = false;
  std::string kernel;
  double reverse = 0;          ///< by grad()
  double forward = 0;          ///< by jvp()
  double difference = 0;       ///< by central differences
  double step = 0;             ///< the step of these that fitted best
  double forward_error = 0;    ///< of reverse against forward, relative
  double difference_error = 0; ///< of reverse against differences, relative
  double forward_tolerance = 0;
  double difference_tolerance = 0;
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
  const detail::ArgumentValue values[] = {detail::ArgumentValue(arguments)...};
  return detail::check_gradient(kernel, values);
}

} // namespace costate
