#pragma once
/// Bundle adjustment of ADBench as kernels.

#include "adbench/Data.h"

#include "costate/costate.h"

namespace costate::adbench {

/// The observations of one input on a device. The Jacobian has two rows per
/// observation; each takes one gradient launch, with copies of the parameters
/// that belong to one observation each.
class Ba {
public:
  Ba(const Device &device, const BaInput &input);

  void runResiduals();
  void runJacobians();

  /// p x 2
  std::vector<double> residuals() const;
  /// p x 30, column by column
  std::vector<double> jacobians() const;

private:
  void runRow(Array<double> &parameters, double seedU, double seedV);

  Kernel residualKernel, gatherKernel, localKernel;
  Array<double> cameras, points, weights, features;
  Array<int32_t> cameraOf, pointOf;
  Array<double> u, v, weightErrors;
  Array<double> first, second; ///< 15 x p: the parameters of each observation
};

} // namespace costate::adbench
