#pragma once
/// What holds for every example that minimises a loss.

#include "../common/Problem.h"
#include "conformance/TestDevice.h"

#include <cmath>
#include <gtest/gtest.h>

namespace example {

using costate::test::openDevice;

/// Expects some entries of the gradient to be differences of the loss.
inline void expectSlopes(Problem &problem, const Numbers &parameters,
                         double step = 1e-4) {
  Numbers slope;
  double loss = problem.gradient(parameters, slope);
  EXPECT_NEAR(loss, problem.loss(parameters), 1e-12 * std::abs(loss));
  double largest = 0;
  for (double one : slope)
    largest = std::max(largest, std::abs(one));
  EXPECT_GT(largest, 0);
  for (size_t k = 0; k < slope.size(); k += slope.size() / 12 + 1)
    EXPECT_NEAR(slope[k], difference(problem, parameters, k, step),
                1e-7 * largest)
        << "parameter " << k;
}

} // namespace example
