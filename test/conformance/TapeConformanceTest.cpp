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

TEST_F(TapeConformance, OverwritesOfWhatIsNeededAreRefused) {
  {
    auto recording = tape.record();
    square(x, y);
    scale(x, 2);
    total(y, loss);
  }
  x.grad().fill(7);
  expectError(ErrorCode::CannotReplay,
              {"`square`", "entry 1", "argument 1", "`scale`", "entry 2"},
              [&] { tape.backward(loss); });
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(3, 7));
}

TEST_F(TapeConformance, HostWritesOfWhatIsNeededAreRefused) {
  {
    auto recording = tape.record();
    square(x, y);
    x.fill(2);
    total(y, loss);
  }
  expectError(ErrorCode::CannotReplay, {"`square`", "a write by the host"},
              [&] { tape.backward(loss); });
}

TEST_F(TapeConformance, WritesBehindTheRecordingAreRefused) {
  {
    auto recording = tape.record();
    square(x, y);
    total(y, loss);
  }
  x.fill(3);
  expectError(ErrorCode::CannotReplay, {"`square`", "argument 1", "since"},
              [&] { tape.backward(loss); });
}

TEST_F(TapeConformance, IndicesAndBoundsCountAsNeeded) {
  Kernel gather =
      kernel("gather", [](ArrayRef<int, 1> at, ArrayRef<double, 1> x,
                          ArrayRef<double, 0> sum) {
        parallel(at.size(), [&](Index i) { sum() += x(at(i)); });
      });
  auto at = constant<int>({0, 2, 2});
  {
    auto recording = tape.record();
    gather(at, x, loss);
    at.fill(1);
    gather(at, x, loss);
  }
  expectError(ErrorCode::CannotReplay, {"`gather`", "argument 1"},
              [&] { tape.backward(loss); });
}

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

} // namespace
