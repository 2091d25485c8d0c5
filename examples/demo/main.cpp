/// A soft pony learns to gallop: gradient descent through a simulation.
///
///     costate-demo [PICTURE]        the default is demo.png

#include "Plot.h"
#include "Simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <unistd.h>

using namespace pony;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int iterations = 22;
constexpr Point target = {0.85, 0.18};

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Prints five entries of a gradient beside central differences. The muscles do
/// something arbitrary, so that feet slip and leave the ground.
void checkGradient(Simulation &simulation) {
  constexpr double h = 1e-5;
  Numbers weights(simulation.parameters()), slope;
  for (size_t k = 0; k < weights.size(); ++k)
    weights[k] = 0.3 * std::sin(12.9 * k);
  simulation.gradient(weights, slope);
  std::printf("d loss / d weight     reverse mode   central differences\n");
  for (size_t k = 2; k < weights.size(); k += weights.size() / 5 + 1) {
    Numbers up = weights, down = weights;
    up[k] += h;
    down[k] -= h;
    std::printf("           %4zu   %16.12f   %16.12f\n", k, slope[k],
                (simulation.loss(up) - simulation.loss(down)) / (2 * h));
  }
}

/// Gradient descent with momentum. Of the gradient only the direction counts,
/// as its length varies wildly when feet hit the ground; close to the target
/// the steps get smaller.
class Descent {
public:
  explicit Descent(int64_t parameters) : momentum(parameters) {}

  void step(Numbers &weights, const Numbers &slope, double loss) {
    double length = std::sqrt(
        std::inner_product(slope.begin(), slope.end(), slope.begin(), 0.0));
    double rate = std::min(1.0, 10 * std::sqrt(loss));
    for (size_t k = 0; k < weights.size(); ++k) {
      momentum[k] = 0.6 * momentum[k] + 0.4 * slope[k] / length;
      weights[k] -= rate * momentum[k];
    }
  }

private:
  Numbers momentum;
};

void showProgress(int done, double loss, double seconds) {
  bool stay = isatty(STDOUT_FILENO) && done < iterations;
  std::string bar(30 * done / iterations, '#');
  std::printf("[%-30s] %2d of %d   loss %.6f   %.2f s per iteration%s",
              bar.c_str(), done, iterations, loss, seconds, stay ? "\r" : "\n");
  std::fflush(stdout);
}

/// Returns the losses on the way; `simulation` last ran with what was learnt.
Numbers learn(Simulation &simulation) {
  Numbers weights(simulation.parameters()), slope, losses; // at first: stand
  Descent descent(simulation.parameters());
  for (int k = 1; k <= iterations; ++k) {
    Clock::time_point start = Clock::now();
    losses.push_back(simulation.gradient(weights, slope));
    descent.step(weights, slope, losses.back());
    showProgress(k, losses.back(), secondsSince(start));
  }
  losses.push_back(simulation.loss(weights));
  return losses;
}

int run(const std::string &picture) {
  Clock::time_point start = Clock::now();
  Body body = makePony();
  Simulation simulation(costate::Device::best(), body, target);
  std::printf("%zu particles, %d muscles, %zu weights to learn\n\n",
              body.position.size(), body.muscles,
              size_t(simulation.parameters()));
  checkGradient(simulation);
  std::printf("\nloss: squared distance to the target, m2\n");
  Numbers losses = learn(simulation);
  std::printf("from %.6f to %.6f: %.0f times less, in %.0f s\n", losses.front(),
              losses.back(), losses.front() / losses.back(),
              secondsSince(start));
  return plot(simulation, body, target, losses, picture) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "demo.png");
  } catch (const costate::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
