/// A wave in a domain that is cut into parts, with an exchange before each
/// step: as many cells on each rank (weak), or in all (strong). Ranks are
/// threads, each with a device of one thread.

#include "Bench.h"

#include "costate/costate.h"

#include <thread>

namespace costate::bench {
namespace {

constexpr int steps = 8;

Kernel wave() {
  return kernel("wave", [](ArrayRef<double, 2> u, ArrayRef<double, 2> v) {
    parallel({u.size(0) - 2, u.size(1) - 2}, [&](Index k, Index l) {
      Index i = k + 1, j = l + 1;
      v(i, j) = 2 * u(i, j) - v(i, j) +
                0.2 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) -
                       4 * u(i, j));
    });
  });
}

/// What one rank does, and how long that takes.
struct Part {
  Part(const Options &options, distributed::Group ranks, int64_t rows,
       int64_t columns)
      : group(std::move(ranks)),
        device(Device::open(options.device, {.threads = 1})),
        u(device.array<double>({rows + 2, columns}, grad)),
        v(device.array<double>({rows + 2, columns}, grad)),
        before(u, 0, 1, true, group), after(v, 0, 1, true, group) {
    u.fill(1);
  }

  /// Milliseconds of a step, of all ranks together.
  template <class F> double each(const Options &options, F &&body) {
    body();
    group->barrier();
    auto once = [&] {
      body();
      device.synchronize();
      group->barrier();
    };
    int rounds = options.smoke ? 1 : 10;
    auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < rounds; ++k)
      once();
    std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    return taken.count() / (rounds * steps);
  }

  void primal() {
    for (int t = 0; t < steps; t += 2) {
      before();
      step(u, v);
      after();
      step(v, u);
    }
  }
  void gradient() {
    for (int t = 0; t < steps; t += 2) {
      step.grad(v, u);
      after.grad();
      step.grad(u, v);
      before.grad();
    }
  }
  void exchange() {
    for (int t = 0; t < steps; ++t)
      before();
  }

  distributed::Group group;
  Device device;
  Array<double> u, v;
  distributed::Halo before, after;
  Kernel step = wave();
};

void measure(const Options &options, int size, int64_t rows, int64_t columns,
             Row &row) {
  std::vector<distributed::Group> groups = distributed::in_process(size);
  std::vector<std::thread> threads;
  double primal = 0, gradient = 0, exchange = 0;
  for (distributed::Group &group : groups)
    threads.emplace_back([&, group = std::move(group)]() mutable {
      bool tells = group->rank() == 0;
      Part part(options, std::move(group), rows, columns);
      double times[] = {part.each(options, [&] { part.primal(); }),
                        part.each(options, [&] { part.gradient(); }),
                        part.each(options, [&] { part.exchange(); })};
      if (tells)
        primal = times[0], gradient = times[1], exchange = times[2];
    });
  for (std::thread &thread : threads)
    thread.join();
  row.set("primal_ms", primal);
  row.set("gradient_ms", gradient);
  row.set("exchange_ms", exchange);
}

void halo(const Options &options, Results &results) {
  int64_t extent = options.smoke ? 32 : 1024;
  for (bool weak : {true, false})
    for (int size : {1, 2, 4}) {
      std::string name =
          (weak ? "weak, ranks " : "strong, ranks ") + std::to_string(size);
      measure(options, size, weak ? extent : extent / size, extent,
              results.add(name, size));
    }
}

Registration registration("halo",
                          "a wave in a domain of several ranks, which are "
                          "threads: weak and strong scaling",
                          halo);

} // namespace
} // namespace costate::bench
