#include "Problem.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace example {

double difference(Problem &problem, const Numbers &parameters, size_t k,
                  double step) {
  auto lossAt = [&](double shift) {
    Numbers moved = parameters;
    moved[k] += shift;
    return problem.loss(moved);
  };
  auto slope = [&](double h) { return (lossAt(h) - lossAt(-h)) / (2 * h); };
  return (4 * slope(step / 2) - slope(step)) / 3;
}

void printSlopes(Problem &problem, const Numbers &parameters) {
  Numbers slope;
  problem.gradient(parameters, slope);
  std::printf("d loss / d parameter    reverse mode     differences\n");
  for (size_t k = slope.size() / 6; k < slope.size(); k += slope.size() / 3 + 1)
    std::printf("              %6zu  %14.10f  %14.10f\n", k, slope[k],
                difference(problem, parameters, k, 1e-5));
}

Numbers descend(Problem &problem, Numbers &parameters, int iterations,
                double rate) {
  Numbers losses, slope, mean(parameters.size()), square(parameters.size());
  for (int t = 1; t <= iterations; ++t) {
    losses.push_back(problem.gradient(parameters, slope));
    if ((t - 1) % std::max(1, iterations / 5) == 0)
      std::printf("iteration %4d   loss %10.3e\n", t - 1, losses.back());
    for (size_t k = 0; k < slope.size(); ++k) {
      mean[k] += 0.1 * (slope[k] - mean[k]);
      square[k] += 0.01 * (slope[k] * slope[k] - square[k]);
      double step = mean[k] / (1 - std::pow(0.9, t));
      double scale = std::sqrt(square[k] / (1 - std::pow(0.99, t)));
      parameters[k] -= rate * step / (scale + 1e-12);
    }
  }
  losses.push_back(problem.loss(parameters));
  std::printf("iteration %4d   loss %10.3e: %.0f times less\n", iterations,
              losses.back(), losses.front() / losses.back());
  return losses;
}

} // namespace example
