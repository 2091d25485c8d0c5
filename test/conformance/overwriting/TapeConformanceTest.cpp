/// Recordings: exact over launches and host writes, or an error that names both
/// ends.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

class TapeConformance : public testing::Test {
protected:
  Kernel square =
      kernel("square", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
      });
  Kernel total =
      kernel("total", [](ArrayRef<double, 1> x, ArrayRef<double, 0> sum) {
        parallel(x.size(), [&](Index i) { sum() += sin(x(i)); });
      });
  Kernel scale = kernel("scale", [](ArrayRef<double, 1> x, Scalar<double> by) {
    parallel(x.size(), [&](Index i) { x(i) = by * x(i) + 1; });
  });
  Array<double> x = active<double>({1, 2, 3});
  Array<double> y = active<double>({0, 0, 0});
  Array<double> z = active<double>({0, 0, 0});
  Array<double> loss = cpu().array<double>({}, grad | dual);
  Tape tape;
};

TEST_F(TapeConformance, BackwardMayRunTwice) {
  {
    auto recording = tape.record();
    square(x, y);
    square(y, z);
    total(z, loss);
  }
  for (int times = 1; times <= 2; ++times) {
    tape.backward(loss);
    for (int i = 0; i < 3; ++i) {
      double v = i + 1;
      EXPECT_NEAR(x.grad().to_host()[i],
                  times * std::cos(std::pow(v, 4)) * 4 * std::pow(v, 3), 1e-11);
    }
  }
  EXPECT_EQ(tape.size(), 3u);
}

// RULE: needed-values
TEST_F(TapeConformance, OverwritesOfWhatNothingNeedsAreExact) {
  {
    auto recording = tape.record();
    scale(x, 2);
    scale(x, 3);
    total(x, loss);
  }
  tape.backward(loss);
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(x.grad().to_host()[i], 6 * std::cos(3 * (2 * (i + 1) + 1) + 1),
                1e-14);
}

// RULE: recordings
TEST_F(TapeConformance, OverwritesOfWhatIsNeededAreExact) {
  {
    auto recording = tape.record();
    square(x, y);
    scale(x, 2);
    total(y, loss);
  }
  EXPECT_EQ(tape.report().bytes, 24u);
  tape.backward(loss);
  for (int i = 0; i < 3; ++i) {
    double v = i + 1;
    EXPECT_NEAR(x.grad().to_host()[i], std::cos(v * v) * 2 * v, 1e-14);
    EXPECT_EQ(x.to_host()[i], 2 * v + 1);
  }
}

TEST_F(TapeConformance, OverwritesOfWhatMayNotBeCopiedAreRefused) {
  Tape strict({.snapshot = false});
  {
    auto recording = strict.record();
    square(x, y);
    scale(x, 2);
    total(y, loss);
  }
  x.grad().fill(7);
  expectError(ErrorCode::CannotReplay,
              {"`square`", "entry 1", "argument 1", "`scale`", "entry 2"},
              [&] { strict.backward(loss); });
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(3, 7));
  strict.clear();
  {
    auto recording = strict.record();
    square(x, y);
    x.fill(2);
    total(y, loss);
  }
  int line = __LINE__ - 3;
  expectError(ErrorCode::CannotReplay,
              {"`square`", "a write by the host", here(__FILE__, line)},
              [&] { strict.backward(loss); });
}

/// s += x^2, x = 0, where neither launch needs a copy for itself.
// RULE: recordings
TEST_F(TapeConformance, ALaunchMayOverwriteWhatAnEarlierOneNeeds) {
  Kernel squares =
      kernel("squares", [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) { s() += x(i) * x(i); });
      });
  Kernel clear = kernel("clear", [](ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) { x(i) = 0; });
  });
  x.from_host({0.5, 1.5, -0.8});
  {
    auto recording = tape.record();
    squares(x, loss);
    clear(x);
  }
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{1, 3, -1.6}));
  tape.clear();
  x.from_host({0.5, 1.5, -0.8});
  {
    auto recording = tape.record();
    squares(x, loss);
    x.fill(2);
    squares(x, loss);
  }
  tape.backward(loss, {.clear_inputs = true});
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{1, 3, -1.6}));
}

// RULE: recordings
TEST_F(TapeConformance, WritesAfterTheRecordingAreExact) {
  {
    auto recording = tape.record();
    square(x, y);
    total(y, loss);
  }
  x.fill(3);
  tape.backward(loss);
  EXPECT_NEAR(x.grad().to_host()[1], std::cos(4.0) * 4, 1e-14);
  EXPECT_EQ(x.to_host()[1], 3);
}

TEST_F(TapeConformance, IndicesAndBoundsCountAsNeeded) {
  Kernel gather =
      kernel("gather", [](ArrayRef<int, 1> at, ArrayRef<double, 1> x,
                          ArrayRef<double, 0> sum) {
        parallel(at.size(), [&](Index i) { sum() += x(at(i)); });
      });
  Kernel power =
      kernel("power", [](ArrayRef<int, 1> iterations, ArrayRef<double, 1> x,
                         ArrayRef<double, 0> sum) {
        parallel(iterations.size(), [&](Index i) {
          Var<double> v = 1;
          FOR (k, 0, iterations(i)) {
            v = v * x(i);
          }
          WHILE (v > 100.0) {
            v = 0.5 * v;
          }
          sum() += v;
        });
      });
  auto at = constant<int>({0, 2, 2}), iterations = constant<int>({2, 3, 5});
  {
    auto recording = tape.record();
    gather(at, x, loss);
    at.fill(1);
    gather(at, x, loss);
    power(iterations, x, loss);
    iterations.fill(1000);
    power(at, x, loss);
  }
  at.fill(-7);
  tape.backward(loss);
  // Of x: 1 + 2x + 1, 3 + 3x^2 + 1, 2 + 5x^4 / 4 + 1.
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{4, 16, 104.25}));
  EXPECT_EQ(iterations.to_host()[0], 1000);
}

// RULE: stores-clear
TEST_F(TapeConformance, AHostWriteEndsWhatTheArrayCarried) {
  Kernel add =
      kernel("add", [](ArrayRef<double, 1> x, ArrayRef<double, 0> sum) {
        parallel(x.size(), [&](Index i) { sum() += 2 * x(i); });
      });
  {
    auto recording = tape.record();
    add(x, loss);
    loss.fill(7);
    add(x, loss);
    loss.from_host({3});
    add(x, loss);
  }
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(3, 2));
}

// RULE: carriers
TEST_F(TapeConformance, ACarrierWithoutGradientIsRefused) {
  auto carrier = constant<double>({0, 0, 0});
  {
    auto recording = tape.record();
    square(x, carrier);
    total(carrier, loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"argument 1", "`total`", "`square`", "grad"},
              [&] { tape.backward(loss); });
}

TEST_F(TapeConformance, OneArrayTakesManyLaunches) {
  Kernel add = kernel("weighted", [](ArrayRef<double, 1> x,
                                     ArrayRef<double, 0> sum, Scalar<int> t) {
    parallel(x.size(),
             [&](Index i) { sum() += cast<double>(t) * x(i) * x(i); });
  });
  {
    auto recording = tape.record();
    for (int t = 0; t < 500; ++t)
      add(x, loss, t);
  }
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[2], 6 * 499 * 250);
}

TEST_F(TapeConformance, TemporariesLiveAsLongAsTheRecording) {
  {
    auto temporary = active<double>({0, 0, 0});
    auto recording = tape.record();
    square(x, temporary);
    total(temporary, loss);
  }
  tape.backward(loss);
  EXPECT_NEAR(x.grad().to_host()[1], std::cos(4.0) * 4, 1e-14);
}

TEST_F(TapeConformance, AFailedLaunchIsNotRecorded) {
  Kernel fails = kernel("fails", [](ArrayRef<double, 1> x, Scalar<int> step) {
    FOR (i, 0, 3, step) {
      x(i) = 1;
    }
  });
  auto recording = tape.record();
  EXPECT_THROW(fails(y, 0), Error);
  EXPECT_EQ(tape.size(), 0u);
}

TEST_F(TapeConformance, ATimeIndexKeepsEveryVersion) {
  constexpr int steps = 6;
  Kernel step = kernel("step", [](ArrayRef<double, 2> u, Scalar<int> t) {
    parallel(u.size(1), [&](Index i) {
      u(t + 1, i) = u(t, i) * u(t, i) + sin(u(t, (i + 1) % u.size(1)));
    });
  });
  std::vector<double> start = {0.3, 0.5, 0.7};
  std::vector<double> values((steps + 1) * 3), seeds(values.size());
  std::copy(start.begin(), start.end(), values.begin());
  seeds[steps * 3] = 1;
  auto u = active<double>(values, {steps + 1, 3});
  {
    auto recording = tape.record();
    for (int t = 0; t < steps; ++t)
      step(u, t);
  }
  u.grad().from_host(seeds);
  tape.backward();
  std::vector<double> gradient = u.grad().to_host();
  std::vector<double> after = u.to_host(), adjoint = {1, 0, 0};
  for (int t = steps - 1; t >= 0; --t) {
    const double *v = &after[t * 3];
    std::vector<double> next = adjoint;
    for (int i = 0; i < 3; ++i)
      adjoint[i] = next[i] * 2 * v[i] + next[(i + 2) % 3] * std::cos(v[i]);
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(gradient[i], adjoint[i], 1e-13 * std::abs(adjoint[i]));
  EXPECT_EQ(gradient[steps * 3], 0);
}

/// Two buffers that change places against an array with a time index.
TEST_F(TapeConformance, SwappedBuffersEqualATimeIndex) {
  static constexpr int steps = 1000, n = 32;
  Kernel wave =
      kernel("wave", [](ArrayRef<double, 1> old, ArrayRef<double, 1> now,
                        ArrayRef<double, 1> speed) {
        parallel(now.size(), [&](Index i) {
          Index left = (i + n - 1) % n, right = (i + 1) % n;
          old(i) = 2.0 * now(i) - old(i) +
                   speed(i) * (now(left) - 2.0 * now(i) + now(right)) -
                   0.01 * sin(now(i));
        });
      });
  Kernel indexed =
      kernel("indexed", [](ArrayRef<double, 2> u, ArrayRef<double, 1> speed,
                           Scalar<int> t) {
        parallel(u.size(1), [&](Index i) {
          Index left = (i + n - 1) % n, right = (i + 1) % n;
          u(t + 1, i) = 2.0 * u(t, i) - u(t - 1, i) +
                        speed(i) * (u(t, left) - 2.0 * u(t, i) + u(t, right)) -
                        0.01 * sin(u(t, i));
        });
      });
  std::vector<double> start = randomValues(n, -1, 1);
  std::vector<double> c = randomValues(n, 0.2, 0.4, 2);
  auto speed = active<double>(c), speedToo = active<double>(c);

  auto even = active<double>(start), odd = active<double>(start);
  {
    auto recording = tape.record();
    for (int t = 2; t <= steps; ++t)
      t % 2 ? wave(odd, even, speed) : wave(even, odd, speed);
  }
  TapeReport report = tape.report();
  EXPECT_EQ(report.entries, size_t(steps - 1));
  EXPECT_EQ(report.bytes, size_t(steps - 2) * n * 8);

  std::vector<double> all(size_t(steps + 1) * n);
  std::copy(start.begin(), start.end(), all.begin());
  std::copy(start.begin(), start.end(), all.begin() + n);
  auto u = active<double>(all, {steps + 1, n});
  Tape other;
  {
    auto recording = other.record();
    for (int t = 1; t < steps; ++t)
      indexed(u, speedToo, t);
  }
  EXPECT_EQ(other.report().peak_bytes, 0u);

  std::vector<double> seeds(all.size(), 0.0);
  std::fill_n(seeds.end() - n, n, 1.0);
  u.grad().from_host(seeds);
  other.backward();
  even.grad().fill(1);
  tape.backward();
  auto expectNear = [](double value, double expected) {
    EXPECT_NEAR(value, expected, 1e-12 * std::max(1.0, std::abs(expected)));
  };
  for (int i = 0; i < n; ++i) {
    expectNear(even.to_host()[i], u.to_host()[steps * n + i]);
    expectNear(speed.grad().to_host()[i], speedToo.grad().to_host()[i]);
    expectNear(even.grad().to_host()[i], u.grad().to_host()[i]);
    expectNear(odd.grad().to_host()[i], u.grad().to_host()[n + i]);
  }
}

} // namespace
