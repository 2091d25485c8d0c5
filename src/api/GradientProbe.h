#pragma once
/// Derivatives of a kernel along directions, in three ways, on copies of its
/// arguments.

#include "api/Call.h"

#include <random>

namespace costate::detail {

/// A number for every element of an array.
using Numbers = std::vector<double>;

/// One float array argument.
struct ProbeInput {
  size_t argument;
  bool read;         ///< it has a direction
  Numbers start;     ///< contents at the point
  Numbers cotangent; ///< of the output; empty unless the kernel writes it
};

/// A change of all inputs, by input.
using Direction = std::vector<Numbers>;

struct ForwardDerivative {
  double value = 0;
  double magnitude = 0; ///< sum of the absolute terms of the inner product
};

/// A central difference, how far rounding alone may have moved it, and how far
/// the differences to either side are from it.
struct DifferenceQuotient {
  double step = 0, value = 0, rounding = 0, bend = 0;
};

/// The function of the inputs whose derivatives are taken is the inner product
/// of all outputs with a random cotangent.
class GradientProbe {
public:
  /// Throws MissingGradient if there is no float array.
  explicit GradientProbe(const Call &call);

  const std::vector<ProbeInput> &inputs() const { return all; }
  /// Root mean square of the inputs.
  double size() const;
  /// Whether anything is computed in f32 or f16.
  bool isSingle() const { return single; }

  Direction zero() const;
  /// Of norm 1, nothing for inputs that are not read.
  Direction randomUnit();

  Direction reverse();
  ForwardDerivative forward(const Direction &direction);
  DifferenceQuotient difference(const Direction &direction, double step);

private:
  void copyArguments();
  void reset(const Direction &direction, double along);
  Numbers outputs();
  /// The outputs for the inputs moved by `along`.
  Numbers outputsAt(const Direction &direction, double along);
  Numbers gaussian(size_t count);

  Call original, call;
  std::vector<ProbeInput> all;
  Numbers unmoved; ///< outputs; empty until a difference needs them
  std::mt19937_64 random{20240229};
  bool single, half; ///< anything in f32, in f16
};

double dot(const Direction &a, const Direction &b);

} // namespace costate::detail
