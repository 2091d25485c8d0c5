/// The same bits from any number of threads, in every mode.

#include "Labels.h"
#include "conformance/Gradients.h"

#include <optional>
#include <thread>

COSTATE_LABEL("*", waits);
COSTATE_LABEL("Determinism.WhatAllWorkItemsAddTo*", slow);

using namespace costate;
using namespace costate::test;

namespace {

constexpr int particles = 4000, cells = 24;

/// Particles add mass and momentum to the four nodes around them; then the
/// nodes add up an energy.
Kernel scatter() {
  auto body = [](ArrayRef<double, 2> at, ArrayRef<double, 2> speed,
                 ArrayRef<double, 2> mass, ArrayRef<double, 3> momentum,
                 ArrayRef<double, 0> energy) {
    parallel(at.size(0), [&](Index p) {
      Expr<double> x = at(p, 0) * (cells - 2.0), y = at(p, 1) * (cells - 2.0);
      Expr<int64_t> i = cast<int64_t>(x), j = cast<int64_t>(y);
      Expr<double> fx = x - cast<double>(i), fy = y - cast<double>(j);
      for (int a = 0; a < 2; ++a)
        for (int b = 0; b < 2; ++b) {
          Expr<double> weight = (a ? fx : 1.0 - fx) * (b ? fy : 1.0 - fy);
          mass(i + a, j + b) += weight;
          for (int d = 0; d < 2; ++d)
            momentum(i + a, j + b, d) += weight * sin(speed(p, d));
        }
      energy() += speed(p, 0) * speed(p, 1);
    });
    parallel({mass.size(0), mass.size(1)}, [&](Index i, Index j) {
      IF (mass(i, j) > 0) {
        energy() += momentum(i, j, 0) * momentum(i, j, 1) / mass(i, j);
      }
    });
  };
  return kernel("scatter", body, {.deterministic = true});
}

/// All that one run of all modes leaves.
std::vector<std::vector<double>> resultsOf(const Kernel &k,
                                           const Device &device) {
  Flags both = grad | dual;
  auto at = device.array<double>({particles, 2}, both);
  auto speed = device.array<double>({particles, 2}, both);
  auto mass = device.array<double>({cells, cells}, both);
  auto momentum = device.array<double>({cells, cells, 2}, both);
  auto energy = device.array<double>({}, both);
  at.from_host(randomValues(2 * particles, 0, 1, 3));
  speed.from_host(randomValues(2 * particles, -1, 1, 4));
  at.dual().fill(1);
  energy.grad().fill(1);
  mass.grad().fill(0.25);
  k.jvp(at, speed, mass, momentum, energy);
  std::vector<std::vector<double>> results = {
      mass.to_host(), momentum.to_host(), energy.to_host(),
      energy.dual().to_host()};
  for (Array<double> array : {mass, momentum, energy})
    array.fill(0);
  k(at, speed, mass, momentum, energy);
  k.grad(at, speed, mass, momentum, energy);
  for (const Array<double> &array : {mass, momentum, energy})
    results.push_back(array.to_host());
  results.push_back(at.grad().to_host());
  results.push_back(speed.grad().to_host());
  return results;
}

TEST(Determinism, ScatterInEveryMode) {
  Kernel k = scatter();
  std::vector<std::vector<double>> first;
  for (int threads : {1, 2, 7}) {
    Device device = openDevice({.threads = threads});
    for (int run = 0; run < 10; ++run) {
      auto results = resultsOf(k, device);
      if (first.empty())
        first = results;
      EXPECT_EQ(results, first) << threads << " threads, run " << run;
    }
  }
}

TEST(Determinism, AdjointsOfGathersAndOfSharedValues) {
  Kernel k = kernel("gather",
                    [](ArrayRef<float, 1> table, ArrayRef<int, 1> at,
                       ArrayRef<float, 0> by, ArrayRef<float, 0> sum) {
                      Expr<float> factor = by() * by();
                      parallel(at.size(), [&](Index i) {
                        Var<float> v = 0;
                        FOR (q, 0, 5) {
                          v += sin(table((at(i) + q) % table.size()) * factor);
                        }
                        sum() += v * v;
                      });
                    },
                    {.deterministic = true});
  constexpr int count = 20000;
  std::vector<int> indices(count);
  for (int i = 0; i < count; ++i)
    indices[i] = i * 7919 % 37;
  std::vector<float> values(37);
  for (int i = 0; i < 37; ++i)
    values[i] = 0.01f * i * i;
  std::vector<std::vector<float>> first;
  for (int threads : {1, 2, 7}) {
    Device device = openDevice({.threads = threads});
    auto table = device.array<float>({37}, grad);
    auto at = device.array<int>({count});
    auto by = device.array<float>({}, grad),
         sum = device.array<float>({}, grad);
    table.from_host(values);
    at.from_host(indices);
    by.fill(0.7f);
    sum.grad().fill(1);
    for (int run = 0; run < 10; ++run) {
      for (Array<float> array : {sum, table.grad(), by.grad()})
        array.fill(0);
      k(table, at, by, sum);
      k.grad(table, at, by, sum);
      std::vector<std::vector<float>> results = {
          sum.to_host(), table.grad().to_host(), by.grad().to_host()};
      if (first.empty())
        first = results;
      EXPECT_EQ(results, first) << threads << " threads, run " << run;
    }
  }
}

/// The derivatives by `w` and the loss are the same in all runs, on the CPU for
/// any number of threads; without `deterministic`.
void expectSharedSumsAgree(const Kernel &k, size_t count = 100003,
                           int iterations = 4,
                           std::optional<size_t> budget = std::nullopt) {
  std::vector<double> values = randomValues(count, -1, 1, 5);
  double firstLoss = 0;
  std::vector<double> first;
  for (int threads : {1, 2, 7}) {
    Device device = openDevice({.threads = threads, .tape_budget = budget});
    if (!isOnCpu())
      first.clear();
    auto w = device.array<double>({2}, grad);
    auto x = device.array<double>({count}, grad);
    auto loss = device.array<double>({}, grad);
    w.from_host({1.5, 0.75});
    x.from_host(values);
    for (int run = 0; run < 5; ++run) {
      w.grad().fill(0);
      loss.fill(0);
      k(w, x, loss, iterations);
      loss.grad().fill(1);
      k.grad(w, x, loss, iterations);
      if (first.empty()) {
        first = w.grad().to_host();
        firstLoss = loss.to_host()[0];
      }
      EXPECT_EQ(w.grad().to_host(), first) << threads << " threads";
      EXPECT_EQ(loss.to_host()[0], firstLoss) << threads << " threads";
    }
  }
}

/// `F()(i, most)` iterations in work item `i`.
template <class F>
Kernel sharedSums(const char *name, F, KernelOptions options = {}) {
  return kernel(
      name,
      [](ArrayRef<double, 1> w, ArrayRef<double, 1> x, ArrayRef<double, 0> loss,
         Scalar<int> most) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (q, 0, F()(i, most)) {
            v = sin(v * w(0));
          }
          IF (v > 0.25) {
            v = v * w(1);
          }
          loss() += v;
        });
      },
      options);
}

TEST(Determinism, WhatAllWorkItemsAddTo) {
  expectSharedSumsAgree(
      sharedSums("fit", [](Index, Scalar<int>) { return 2; }));
}

TEST(Determinism, WhatAllWorkItemsAddToWithATape) {
  expectSharedSumsAgree(
      sharedSums("fit_long", [](Index, Scalar<int> most) { return most; }));
}

/// On a GPU none fits into what a sweep has.
TEST(Determinism, WhatAllWorkItemsAddToWithTapesThatAreCut) {
  auto iterations = [](Index, Scalar<int> most) { return most; };
  for (bool deterministic : {false, true})
    expectSharedSumsAgree(
        sharedSums("fit_deep", iterations, {.deterministic = deterministic}),
        401, 6000, /*budget=*/0);
}

TEST(Determinism, WhatAllWorkItemsAddToWithTapesOfAnyDepth) {
  if (!isOnCpu())
    GTEST_SKIP() << "tiles go to any warp of a GPU";
  expectSharedSumsAgree(
      sharedSums("fit_ragged", [](Index i, Scalar<int>) { return i % 5; }));
}

TEST(Determinism, OneKernelFromManyHostThreads) {
  Kernel k =
      kernel("shared", [](ArrayRef<double, 1> x, ArrayRef<double, 0> sum) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (q, 0, i % 50) {
            v = v * sin(v);
          }
          sum() += v;
        });
      });
  auto run = [&] {
    auto x = cpu().array<double>({2000}, grad);
    auto sum = cpu().array<double>({}, grad);
    x.fill(2.5);
    Tape tape;
    {
      auto recording = tape.record();
      k(x, sum);
    }
    tape.backward(sum);
    return x.grad().to_host();
  };
  std::vector<std::vector<double>> results(6);
  std::vector<std::thread> threads;
  for (auto &result : results)
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 10; ++repeat)
        result = run();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &result : results)
    EXPECT_EQ(result, results[0]);
}

// Shared additions are made at the end of a range; what a work item adds to its
// own elements it can read at once.

constexpr KernelOptions deterministic{.deterministic = true};

// RULE: updates
TEST(DeterministicRange, AWorkItemReadsWhatItHasAdded) {
  auto body = [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      x(i) += 0.5;
      y(i) = sin(x(i));
    });
  };
  Kernel plain = kernel("plain", body);
  Kernel same = kernel("same", body, deterministic);
  auto x = active<double>({0.25, 1, -2}), y = active<double>({0, 0, 0});
  same(x, y);
  EXPECT_EQ(y.to_host(), (std::vector<double>{std::sin(0.75), std::sin(1.5),
                                              std::sin(-1.5)}));
  expectGradients({x}, {y}, plain, x, y);
  expectGradients({x}, {y}, same, x, y);
}

TEST(DeterministicRange, PairsOfElements) {
  Kernel k = kernel(
      "pairs",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y, ArrayRef<double, 1> z) {
        parallel(x.size(0), [&](Index i) {
          y(2 * i) = sin(x(i));
          y(2 * i + 1) = cos(x(i));
          z(i) = y(2 * i) * y(2 * i) * y(2 * i + 1);
        });
      },
      deterministic);
  auto x = active<double>({0.25, 1, -2});
  auto y = active(std::vector<double>(6, 0.0)), z = active<double>({0, 0, 0});
  expectGradients({x}, {y, z}, k, x, y, z);
}

/// Sums of a range with tapes, on a device that has tapes of other launches.
TEST(DeterministicRange, BitsDoNotDependOnEarlierLaunches) {
  Kernel k = kernel(
      "history",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> w, ArrayRef<int, 1> n,
         ArrayRef<double, 1> y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> v = x(i);
          FOR (t, 0, n(i)) {
            v = v + w(0) * sin(v);
            y(i) = v;
          }
        });
      },
      deterministic);
  auto gradient = [&](const Device &device, int iterations) {
    auto x = device.array<double>({4000}, grad),
         w = device.array<double>({1}, grad),
         y = device.array<double>({4000}, grad);
    std::vector<double> start;
    for (int i = 0; i < 4000; ++i)
      start.push_back(1.5 + std::sin(i));
    x.from_host(start);
    w.fill(0.1);
    auto n = device.array<int>({4000});
    n.fill(iterations);
    y.grad().fill(1);
    k.grad(x, w, n, y);
    return w.grad().to_host();
  };
  Device used = openDevice();
  gradient(used, 20);
  EXPECT_EQ(gradient(used, 30), gradient(openDevice(), 30));
}

TEST(DeterministicRange, RefusesWhatItCannotTellApart) {
  Kernel reads = kernel(
      "reads",
      [](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(at.size(0), [&](Index i) {
          x(at(i)) += 1;
          y(i) = x(at(i));
        });
      },
      deterministic);
  Kernel stores = kernel(
      "stores",
      [](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y,
         ArrayRef<double, 1> z) {
        parallel(at.size(0), [&](Index i) {
          x(at(i)) = sin(y(i));
          z(i) = x(at(i)) * x(at(i));
        });
      },
      deterministic);
  auto at = constant<int>({2, 0, 1});
  auto x = active<double>({1, 2, 3}), y = active<double>({4, 5, 6}),
       z = active<double>({0, 0, 0});
  auto codeOf = [](auto &&launch) {
    try {
      launch();
    } catch (const Error &error) {
      return error.code();
    }
    return ErrorCode::Internal;
  };
  EXPECT_EQ(codeOf([&] { reads(at, x, y); }), ErrorCode::BadKernel);
  EXPECT_EQ(codeOf([&] { stores.grad(at, x, y, z); }), ErrorCode::CannotReplay);
}

} // namespace
