/// Particles to grid and grid to particles, as the demo has them in the middle
/// of its run: kernels beside their gradients.

#include "Bench.h"
#include "demo/Kernels.h"
#include "demo/Simulation.h"

#include "costate/syntax.h"

namespace costate::bench {
namespace {

constexpr int64_t middle = pony::steps / 2;

/// Adjoints of what the step computes for particles; those of nodes stay.
Kernel seed =
    kernel("seed", [](ArrayRef<double, 3> adjoint, Scalar<int64_t> t) {
      parallel({adjoint.size(1), adjoint.size(2)},
               [&](Index p, Index k) { adjoint(t, p, k) = 1.0; });
    });

/// The median of launches that each have something prepared, which take too
/// short for the least to say much: of the processor on hosts, else until the
/// device is done.
template <class Prepare, class Launch>
double medianLaunch(const Options &options, const Device &device,
                    Prepare &&prepare, Launch &&launch) {
  auto run = [&] {
    launch();
    device.synchronize();
  };
  Options once = options;
  once.minTime = 0;
  std::vector<double> times;
  double total = 0;
  do {
    prepare();
    device.synchronize();
    times.push_back(options.isHost() ? processorMilliseconds(once, run)
                                     : milliseconds(once, run));
    total += times.back();
  } while (!options.smoke && total < 1e3 * options.minTime);
  auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

void demo(const Options &options, Results &results) {
  for (int threads : options.threads) {
    Device device = Device::open(options.device, {.threads = threads});
    pony::Simulation simulation(device, pony::makePony(), {0.85, 0.18});
    simulation.loss(pony::Numbers(size_t(simulation.parameters()), 0.01));
    const pony::Fields &f = simulation.fields();
    f.mass.grad().fill(1);
    f.momentum.grad().fill(1);
    auto measure = [&](const char *name, auto seeds, auto primal,
                       auto gradient) {
      primal(); // compiles
      gradient();
      Row &row = results.add(name, threads);
      double alone = medianLaunch(options, device, [] {}, primal);
      double both = medianLaunch(options, device, seeds, gradient);
      row.set("primal_ms", alone);
      row.set("gradient_ms", both);
      row.set("ratio", both / alone);
    };
    measure(
        "p2g", [&] { seed(f.F.grad(), middle + 1); },
        [&] {
          pony::scatter(f.x, f.v, f.C, f.F, f.muscle, f.fibre, f.activation,
                        f.mass, f.momentum, middle);
        },
        [&] {
          pony::scatter.grad(f.x, f.v, f.C, f.F, f.muscle, f.fibre,
                             f.activation, f.mass, f.momentum, middle);
        });
    measure(
        "g2p",
        [&] {
          for (const Array<double> *series : {&f.x, &f.v, &f.C})
            seed(series->grad(), middle + 1);
        },
        [&] { pony::gather(f.x, f.v, f.C, f.velocity, middle); },
        [&] { pony::gather.grad(f.x, f.v, f.C, f.velocity, middle); });
  }
}

Registration registration("demo", "particles to grid and back, as in the demo",
                          demo);

} // namespace
} // namespace costate::bench
