#pragma once
/// The Gaussian mixture objective of ADBench as a kernel.

#include "adbench/Data.h"

#include "costate/costate.h"

namespace costate::adbench {

/// One model on a device, ready to launch.
class Gmm {
public:
  /// With `grad | dual`, also for products with the Hessian.
  Gmm(const Device &device, const GmmInput &input, Flags flags = grad);

  void runObjective();
  /// The gradient of the objective, into the adjoints of the parameters.
  void runGradient();
  /// The product of the Hessian with `direction`, and the gradient again.
  void runHessianProduct(const std::vector<double> &direction);

  double objective() const;
  /// In the order alpha, mu, icf.
  std::vector<double> gradient() const;
  std::vector<double> hessianProduct() const;

private:
  template <class F> void launch(F &&entry);

  Kernel kernel;
  Array<double> alpha, mu, icf, x;
  Array<double> diagonal, lower, sums, centred, terms,
      value; // what the kernel computes
  double gamma, m, constant;
};

} // namespace costate::adbench
