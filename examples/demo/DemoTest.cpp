/// The demo's gradient through all of its steps, against differences.

#include "Labels.h"
#include "Simulation.h"

#include <cmath>
#include <gtest/gtest.h>

COSTATE_LABEL("*", waits);
COSTATE_LABEL("Demo.GradientThroughTheWholeSimulation", slow);

using namespace pony;

TEST(Demo, GradientThroughTheWholeSimulation) {
  Simulation simulation(costate::Device::open("cpu"), makePony(), {0.85, 0.18});
  Numbers weights(simulation.parameters()), slope;
  for (size_t k = 0; k < weights.size(); ++k)
    weights[k] = 0.3 * std::sin(12.9 * k);
  simulation.gradient(weights, slope);
  constexpr double h = 1e-5;
  size_t k = 31;
  Numbers up = weights, down = weights;
  up[k] += h;
  down[k] -= h;
  double difference = (simulation.loss(up) - simulation.loss(down)) / (2 * h);
  EXPECT_NEAR(slope[k], difference, 1e-5 * std::abs(difference));
}
