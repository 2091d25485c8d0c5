/// Additions to small arrays by all work items: threads have copies, which are
/// added up in a fixed order.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

constexpr int64_t points = 20000;

/// h(bin(i)) += x(i), and y(i) = sum over j of sin(w(j) x(i)) t(bin(i)).
template <class T> Kernel makeKernel() {
  using X = ArrayRef<T, 1>;
  return kernel("tables", [](X x, ArrayRef<int, 1> bin, X w, X t, X h, X y) {
    parallel(x.size(0), [&](Index i) {
      atomic_add(h(bin(i)), x(i));
      Var<T> v = T(0);
      FOR (j, 0, w.size(0)) {
        v += sin(w(j) * x(i));
      }
      y(i) = v * t(bin(i));
    });
  });
}

template <class T> struct Tables {
  Tables(int threads, int64_t items, int64_t bins, int64_t weights)
      : device(openDevice({.threads = threads})), x(make(items)),
        w(make(weights)), t(make(bins)), h(make(bins)), y(make(items)),
        bin(device.array<int>({items})) {
    std::vector<int> numbers(static_cast<size_t>(items));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<int>(i * i % 101 % static_cast<size_t>(bins));
    bin.from_host(numbers);
    h.fill(T(0.25));
    y.grad().fill(T(1));
    h.grad().fill(T(0.5));
  }

  std::vector<T> run() {
    Kernel k = makeKernel<T>();
    k(x, bin, w, t, h, y);
    k.grad(x, bin, w, t, h, y);
    std::vector<T> all = h.to_host();
    for (Array<T> *array : {&w, &t, &x})
      for (T slope : array->grad().to_host())
        all.push_back(slope);
    return all;
  }

  Array<T> make(int64_t count) {
    Array<T> array = device.array<T>({count}, grad);
    std::vector<T> values;
    for (double value : randomValues(static_cast<size_t>(count), -1, 1))
      values.push_back(static_cast<T>(value));
    array.from_host(values);
    return array;
  }

  Device device;
  Array<T> x, w, t, h, y;
  Array<int> bin;
};

template <class T> void expectSameBits(int64_t bins, int64_t weights) {
  std::vector<T> alone = Tables<T>(1, points, bins, weights).run();
  for (int threads : {2, 5})
    for (int repeat = 0; repeat < 3; ++repeat)
      EXPECT_EQ((Tables<T>(threads, points, bins, weights).run()), alone)
          << threads << " threads";
}

TEST(Copies, GiveTheSameBitsForAnyNumberOfThreads) {
  if (!isOnCpu())
    GTEST_SKIP() << "threads of the CPU";
  expectSameBits<double>(10, 7);
  expectSameBits<float>(101, 40);
}

TEST(Copies, AddUpWhatAllWorkItemsAdd) {
  for (int64_t items : {1, 15, 40, 1000})
    for (int64_t bins : {1, 3, 101}) {
      Tables<double> tables(3, items, bins, 2);
      std::vector<double> x = tables.x.to_host(), w = tables.w.to_host();
      std::vector<int> bin = tables.bin.to_host();
      std::vector<double> sums(static_cast<size_t>(bins), 0.25),
          slopes(static_cast<size_t>(bins), 0);
      for (size_t i = 0; i < x.size(); ++i) {
        sums[static_cast<size_t>(bin[i])] += x[i];
        for (double weight : w)
          slopes[static_cast<size_t>(bin[i])] += std::sin(weight * x[i]);
      }
      std::vector<double> all = tables.run();
      for (size_t k = 0; k < sums.size(); ++k) {
        EXPECT_NEAR(all[k], sums[k], 1e-12) << items << " " << bins;
        EXPECT_NEAR(all[k + sums.size() + w.size()], slopes[k], 1e-12);
      }
    }
}

TEST(Copies, HaveTheGradientOfDifferences) {
  auto x = active(randomValues(40, -1, 1)), y = active(randomValues(40, 0, 0));
  auto w = active({0.3, 0.7}), t = active({0.5, -0.2}), h = active({0.0, 0.0});
  std::vector<int> numbers(40);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = i % 3 == 0;
  auto bin = constant(numbers);
  expectGradients({x, w, t}, {h, y}, makeKernel<double>(), x, bin, w, t, h, y);
}

/// u(t + 1, i) = u(t, i) + sin(u(t, to(i))), and h(t, bin(i)) and n(t, bin(i))
/// count.
Kernel makeSteps() {
  using U = ArrayRef<double, 2>;
  return kernel("steps", [](U u, ArrayRef<int, 1> to, U h, ArrayRef<int, 2> n,
                            Scalar<int64_t> t) {
    parallel(to.size(0), [&](Index i) {
      u(t + 1, i) = u(t, i) + sin(u(t, cast<int64_t>(to(i))));
      IF (t < h.size(0)) {
        atomic_add(h(t, cast<int64_t>(to(i))), u(t, i));
        atomic_add(n(t, cast<int64_t>(to(i))), 1);
      }
    });
  });
}

struct Steps {
  std::vector<double> u, slopes, h;
  std::vector<int> n;

  bool operator==(const Steps &) const = default;
};

constexpr int64_t stepItems = 6000;

/// Elements that `bins` of the items share. One step is beyond the end of h.
Steps runSteps(int threads, int64_t bins) {
  Device device = openDevice({.threads = threads});
  Array<double> u = device.array<double>({5, stepItems}, grad),
                h = device.array<double>({3, stepItems}, grad);
  Array<int> to = device.array<int>({stepItems}),
             n = device.array<int>({3, stepItems});
  std::vector<double> start = randomValues(5 * stepItems, -1, 1);
  std::vector<int> numbers(stepItems);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int>(i * i % 7919 % static_cast<size_t>(bins));
  u.from_host(start);
  to.from_host(numbers);
  u.grad().fill(1);
  h.grad().fill(0.5);
  Kernel k = makeSteps();
  for (int64_t t = 0; t < 4; ++t)
    k(u, to, h, n, t);
  for (int64_t t = 3; t >= 0; --t)
    k.grad(u, to, h, n, t);
  return {u.to_host(), u.grad().to_host(), h.to_host(), n.to_host()};
}

/// The same by hand.
Steps plainSteps(int64_t bins) {
  Steps s{randomValues(5 * stepItems, -1, 1),
          std::vector<double>(5 * stepItems, 1),
          std::vector<double>(3 * stepItems, 0),
          {}};
  s.n.resize(3 * stepItems);
  auto to = [&](size_t i) { return i * i % 7919 % static_cast<size_t>(bins); };
  for (size_t t = 0; t < 4; ++t)
    for (size_t i = 0, row = t * stepItems; i < stepItems; ++i) {
      s.u[row + stepItems + i] = s.u[row + i] + std::sin(s.u[row + to(i)]);
      if (t < 3) {
        s.h[row + to(i)] += s.u[row + i];
        s.n[row + to(i)] += 1;
      }
    }
  for (size_t t = 4; t-- > 0;)
    for (size_t i = 0, row = t * stepItems; i < stepItems; ++i) {
      double &slope = s.slopes[row + stepItems + i];
      s.slopes[row + i] += slope + (t < 3 ? 0.5 : 0);
      s.slopes[row + to(i)] += slope * std::cos(s.u[row + to(i)]);
      slope = 0;
    }
  return s;
}

TEST(Copies, AreOfTheStepThatAllWorkItemsAddTo) {
  for (int64_t bins : {10, 5000}) {
    Steps expected = plainSteps(bins);
    for (int threads : {1, 2, 5}) {
      Steps found = runSteps(threads, bins);
      EXPECT_EQ(found.n, expected.n);
      for (size_t k = 0; k < found.u.size(); ++k) {
        ASSERT_NEAR(found.u[k], expected.u[k], 1e-12);
        ASSERT_NEAR(found.slopes[k], expected.slopes[k],
                    1e-11 * (1 + std::abs(expected.slopes[k])));
      }
      for (size_t k = 0; k < found.h.size(); ++k)
        ASSERT_NEAR(found.h[k], expected.h[k], 1e-11);
    }
  }
}

/// A histogram of 40 bins for each of many steps has the bits of one thread.
Kernel makeStepTables() {
  return kernel("step_tables", [](ArrayRef<double, 1> x, ArrayRef<int, 1> bin,
                                  ArrayRef<double, 2> h, Scalar<int64_t> t) {
    parallel(x.size(0),
             [&](Index i) { atomic_add(h(t, cast<int64_t>(bin(i))), x(i)); });
  });
}

TEST(Copies, OfASmallStepHaveTheSameBitsForAnyNumberOfThreads) {
  if (!isOnCpu())
    GTEST_SKIP() << "threads of the CPU";
  std::vector<double> alone;
  for (int threads : {1, 2, 5}) {
    Device device = openDevice({.threads = threads});
    Array<double> x = device.array<double>({points}),
                  h = device.array<double>({2000, 40});
    Array<int> bin = device.array<int>({points});
    x.from_host(randomValues(points, -1, 1));
    std::vector<int> numbers(points);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<int>(i * i % 101 % 40);
    bin.from_host(numbers);
    for (int64_t t : {0, 1000, 1999})
      makeStepTables()(x, bin, h, t);
    if (threads == 1)
      alone = h.to_host();
    EXPECT_EQ(h.to_host(), alone) << threads << " threads";
  }
}

} // namespace
