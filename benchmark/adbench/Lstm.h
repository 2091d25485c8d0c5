#pragma once
/// The diagonal LSTM objective of ADBench as a kernel.

#include "adbench/Data.h"

#include "costate/costate.h"

namespace costate::adbench {

/// One network on a device, ready to launch.
class Lstm {
public:
  Lstm(const Device &device, const LstmInput &input);

  void runObjective();
  /// The gradient of the objective, into the adjoints of the parameters.
  void runGradient();

  double objective() const;
  /// In the order main, extra.
  std::vector<double> gradient() const;

private:
  Kernel kernel;
  Array<double> main, extra, start, sequence;
  Array<double> state, output, loss; // what the kernel computes
};

} // namespace costate::adbench
