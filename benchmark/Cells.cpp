/// Velocities of the cells of a grid, of which few have mass: lanes beside one
/// work item after the other. Cells with mass are one block, or chosen at
/// random.

#include "Bench.h"

#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <random>

namespace costate::bench {
namespace {

template <class T> class Grid {
public:
  Grid(const Device &device, int64_t side, double active, bool isBlock)
      : device(device), mass(device.array<T>({side, side}, grad)),
        momentum(device.array<T>({side, side, 2}, grad)),
        velocity(device.array<T>({side, side, 2}, grad)) {
    std::mt19937 random(1);
    std::uniform_real_distribution<T> number(-1, 1);
    std::vector<T> masses(mass.size()), momenta(momentum.size());
    for (T &value : momenta)
      value = number(random);
    // A block of columns, since rows are what lanes run along.
    auto width = int64_t(std::ceil(std::sqrt(active) * double(side)));
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j < side; ++j) {
        bool isInside = i < width && j < width;
        bool isChosen = number(random) < 2 * active - 1;
        masses[size_t(i * side + j)] = (isBlock ? isInside : isChosen) ? 1 : 0;
      }
    mass.from_host(masses);
    momentum.from_host(momenta);
  }

  double primal(const Options &options, int lanes) {
    Kernel k = make(lanes);
    return launchMs(options, [&] { k(mass, momentum, velocity); });
  }

  double gradient(const Options &options, int lanes) {
    Kernel k = make(lanes);
    k(mass, momentum, velocity);
    velocity.grad().fill(1);
    return launchMs(options, [&] { k.grad(mass, momentum, velocity); });
  }

private:
  using Cells = ArrayRef<T, 2>;
  using Vectors = ArrayRef<T, 3>;

  /// A wall on the left and a floor that brakes.
  static Kernel make(int lanes) {
    auto body = [](Cells mass, Vectors momentum, Vectors velocity) {
      parallel({mass.size(0), mass.size(1)}, [&](Index i, Index j) {
        Var<T> x = T(0), y = T(0);
        IF (mass(i, j) > T(0)) {
          x = momentum(i, j, 0) / mass(i, j);
          y = momentum(i, j, 1) / mass(i, j) - T(0.01);
          IF ((i < 3) & (x < T(0))) {
            x = T(0);
          }
          IF ((j < 3) & (y < T(0))) {
            x -= clamp(x, T(0.8) * y, T(-0.8) * y);
            y = T(0);
          }
        }
        velocity(i, j, 0) = x;
        velocity(i, j, 1) = y;
      });
    };
    return kernel("cells", body, {.lanes = lanes});
  }

  template <class F> double launchMs(const Options &options, F &&launch) {
    const int launches = options.smoke ? 1 : 50;
    launch(); // compiles
    device.synchronize();
    return processorMilliseconds(options,
                                 [&] {
                                   for (int k = 0; k < launches; ++k)
                                     launch();
                                   device.synchronize();
                                 }) /
           launches;
  }

  Device device;
  Array<T> mass, momentum, velocity;
};

template <class T>
void measure(const Options &options, Results &results, const char *type) {
  int64_t side = options.smoke ? 16 : 192;
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    for (double active : {0.0, 0.02, 0.1, 0.5, 1.0})
      for (bool isBlock : {true, false}) {
        Grid<T> grid(device, side, active, isBlock);
        char name[32];
        std::snprintf(name, sizeof name, "%s-%g%%-%s", type, 100 * active,
                      isBlock ? "block" : "random");
        Row &row = results.add(name, threads);
        double one = grid.primal(options, 1), lanes = grid.primal(options, 0);
        row.set("primal_one_lane_ms", one);
        row.set("primal_ms", lanes);
        row.set("primal_ratio", lanes / one);
        one = grid.gradient(options, 1);
        lanes = grid.gradient(options, 0);
        row.set("gradient_one_lane_ms", one);
        row.set("gradient_ms", lanes);
        row.set("gradient_ratio", lanes / one);
      }
  }
}

void cells(const Options &options, Results &results) {
  measure<float>(options, results, "f32");
  measure<double>(options, results, "f64");
}

Registration
    registration("cells",
                 "cells of which few have mass, in lanes or one by one", cells);

} // namespace
} // namespace costate::bench
