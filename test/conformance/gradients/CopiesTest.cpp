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

} // namespace
