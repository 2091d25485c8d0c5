#pragma once
/// The diagonal LSTM objective of ADBench as a kernel.

#include "adbench/Data.h"

#include "costate/costate.h"

#include <vector>

namespace costate::adbench {

/// One network on a device, ready to launch.
class Lstm {
public:
  /// `stepsOfLaunch`: the steps of the sequence that one launch takes; 0: all.
  Lstm(const Device &device, const LstmInput &input, int64_t stepsOfLaunch = 0);

  void runObjective();
  /// The gradient of the objective, into the adjoints of the parameters.
  void runGradient();

  double objective() const;
  /// In the order main, extra.
  std::vector<double> gradient() const;

private:
  template <class Run> void launch(int64_t first, Run &&run);

  void runAll();

  Kernel kernel;
  Array<double> main, extra, sequence;
  Array<double> state, output; ///< of all steps
  Array<double> loss;
  int64_t steps, stepsOfLaunch;
};

} // namespace costate::adbench
