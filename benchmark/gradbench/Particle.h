#pragma once
/// The particle problem of GradBench (Pearlmutter and Siskind, "Using
/// programming language theory to make automatic differentiation sound and
/// efficient", 2008): a charged particle falls between two charges, of which
/// one can be moved; where to, so that it lands at x = 0?

#include "costate/costate.h"

namespace costate::gradbench {

class Particle {
public:
  explicit Particle(const Device &device);

  /// The square of the place where it lands, and its derivative, with the
  /// charge moved by `control`.
  struct Landing {
    double square, derivative;
    int steps;
  };
  Landing land(double control);
  /// Descent with the step sizes of the authors, from 0 to a derivative or step
  /// of at most 1e-5.
  double bestControl();
  int launches() const { return count; }

private:
  Kernel fall;
  Array<double> control, square;
  Array<int> steps;
  int count = 0;
};

} // namespace costate::gradbench
