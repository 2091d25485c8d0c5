#pragma once
/// The Gaussian mixture objective of ADBench as a kernel.

#include "adbench/Data.h"

#include "costate/costate.h"

namespace costate::adbench {

/// One model on a device, ready to launch.
class Gmm {
public:
  Gmm(const Device &device, const GmmInput &input);

  void runObjective();
  /// The gradient of the objective, into the adjoints of the parameters.
  void runGradient();

  double objective() const;
  /// In the order alpha, mu, icf.
  std::vector<double> gradient() const;

private:
  template <class F> void launch(F &&entry);

  Kernel kernel;
  Array<double> alpha, mu, icf, x;
  Array<double> diagonal, sums, terms, value; // what the kernel computes
  double gamma, m, constant;
};

} // namespace costate::adbench
