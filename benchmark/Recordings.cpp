/// Long recordings: what a launch costs by their number, and beside the launch
/// alone.

#include "Bench.h"

#include "costate/costate.h"

namespace costate::bench {
namespace {

struct State {
  explicit State(const Device &device)
      : x(device.array<double>({4}, grad)), v(device.array<double>({4}, grad)),
        many(device.array<double>({1024}, grad)),
        loss(device.array<double>({}, grad)) {}

  void reset() {
    x.fill(0.5);
    v.fill(0.5);
    many.fill(0.5);
  }

  Array<double> x, v, many, loss;
};

struct Case {
  std::string name;
  std::function<void(State &, int)> step;
};

std::vector<Case> cases() {
  Kernel sine = kernel("sine", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  Kernel two = kernel("two", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
    parallel(a.size(0), [&](Index i) { b(i) = sin(b(i)); });
    parallel(a.size(0), [&](Index i) { a(i) = a(i) + 0.1 * b(i); });
  });
  Kernel one = kernel(
      "one", [](ArrayRef<double, 1> a, Scalar<int> t) { a(t) = sin(a(t)); });
  return {{"array", [=](State &state, int) { sine(state.x); }},
          {"two ranges", [=](State &state, int) { two(state.x, state.v); }},
          {"element", [=](State &state, int t) { one(state.many, t % 1024); }}};
}

/// Of the process, in µs for each of `launches`.
template <class F> double processorTime(int launches, F &&f) {
  std::clock_t start = std::clock();
  f();
  return double(std::clock() - start) * 1e6 / CLOCKS_PER_SEC / launches;
}

void measureOnce(State &state, const Case &one, int launches, double &record,
                 double &reverse) {
  static const Kernel sum =
      kernel("sum", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
        parallel(from.size(0), [&](Index i) { total() += from(i); });
      });
  Tape tape;
  state.reset();
  record = std::min(record, processorTime(launches, [&] {
                      auto recording = tape.record();
                      for (int t = 0; t < launches; ++t)
                        one.step(state, t);
                      sum(state.x, state.loss);
                      sum(state.many, state.loss);
                    }));
  reverse = std::min(reverse, processorTime(launches, [&] {
                       tape.backward(state.loss, {.clear_inputs = true});
                       tape.clear();
                     }));
}

/// The heat equation on two grids of 96 x 96, one after the other.
class Heat {
public:
  explicit Heat(const Device &device)
      : u(grid(device)), w(grid(device)), k(grid(device)),
        loss(device.array<double>({}, grad)) {
    k.fill(0.5);
  }

  void reset() {
    u.fill(0.5);
    w.fill(0.5);
  }
  void launch(int launches) const {
    static const Kernel step =
        kernel("step", [](ArrayRef<double, 2> from, ArrayRef<double, 2> to,
                          ArrayRef<double, 2> by) {
          parallel({from.size(0) - 2, from.size(1) - 2}, [&](Index a, Index b) {
            Index i = a + 1, j = b + 1;
            to(i, j) = from(i, j) +
                       0.2 * by(i, j) *
                           (from(i + 1, j) + from(i - 1, j) + from(i, j + 1) +
                            from(i, j - 1) - 4.0 * from(i, j));
          });
        });
    for (int t = 0; t < launches; ++t)
      t % 2 ? step(w, u, k) : step(u, w, k);
  }
  void total() const {
    static const Kernel sum =
        kernel("sum", [](ArrayRef<double, 2> from, ArrayRef<double, 0> total) {
          parallel({from.size(0), from.size(1)}, [&](Index i, Index j) {
            total() += from(i, j) * from(i, j);
          });
        });
    sum(u, loss);
  }
  void reverse(Tape &tape) const {
    tape.backward(loss, {.clear_inputs = true});
    tape.clear();
  }

private:
  static Array<double> grid(const Device &device) {
    return device.array<double>({96, 96}, grad);
  }
  Array<double> u, w, k;
  Array<double> loss;
};

void measureHeat(const Options &options, int threads, Results &results) {
  Heat heat(Device::open(options.device, {.threads = threads}));
  const int launches = options.smoke ? 10 : 2048;
  double launch = 1e300, record = 1e300, reverse = 1e300;
  auto time = [&](double &best, auto &&f) {
    best = std::min(best, processorTime(launches, f));
  };
  heat.launch(2);
  for (int round = 0; round < (options.smoke ? 1 : 5); ++round) {
    Tape tape;
    heat.reset();
    time(launch, [&] { heat.launch(launches); });
    time(record, [&] {
      auto recording = tape.record();
      heat.launch(launches);
      heat.total();
    });
    time(reverse, [&] { heat.reverse(tape); });
  }
  Row &row = results.add("heat, " + std::to_string(launches), threads);
  row.set("launch_us", launch);
  row.set("record_us", record);
  row.set("reverse_us", reverse);
  row.set("record_ratio", record / launch);
  row.set("reverse_ratio", reverse / launch);
}

void recordings(const Options &options, Results &results) {
  for (int threads : options.threads)
    measureHeat(options, threads, results);
  Device device = Device::open(options.device, {.threads = 1});
  State state(device);
  for (const Case &one : cases())
    for (int launches : {1000, 8000}) {
      double record = 1e300, reverse = 1e300;
      for (int round = 0; round < (options.smoke ? 1 : 5); ++round)
        measureOnce(state, one, options.smoke ? 10 : launches, record, reverse);
      Row &row = results.add(one.name + ", " + std::to_string(launches), 1);
      row.set("record_us", record);
      row.set("reverse_us", reverse);
      if (options.smoke)
        break;
    }
}

Registration registration("recordings",
                          "a launch in recordings of 1000 and 8000 launches "
                          "that overwrite what they read",
                          recordings);

} // namespace
} // namespace costate::bench
