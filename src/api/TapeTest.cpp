#include "conformance/Errors.h"
#include "api/WriteIndex.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <thread>

using namespace costate;
using costate::test::expectError;

namespace {
class Tapes : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = device.array<double>({10}, grad);
  Array<double> y = device.array<double>({10}, grad);
  Array<double> z = device.array<double>({10}, grad);
  Array<double> loss = device.array<double>({}, grad);
  Tape tape;

  Kernel square =
      kernel("square", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = from(i) * from(i); });
      });
  Kernel sum =
      kernel("sum", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
        parallel(from.size(0), [&](Index i) { total() += from(i); });
      });
  /// s(t + 1) = sin(s(t))
  Kernel step = kernel("step", [](ArrayRef<double, 2> s, Scalar<int> t) {
    parallel(s.size(1), [&](Index i) { s(t + 1, i) = sin(s(t, i)); });
  });

  void SetUp() override { x.fill(3); }
};
} // namespace

TEST_F(Tapes, ReverseSeveralLaunches) {
  {
    auto recording = tape.record();
    square(x, y);
    square(y, z);
    sum(z, loss);
  }
  EXPECT_EQ(tape.size(), 3u);
  z.grad().fill(99); // leftovers are cleared
  for (int round = 1; round <= 2; ++round) {
    tape.backward(loss);
    EXPECT_DOUBLE_EQ(x.grad().to_host()[4], round * 4 * 27);
  }
  square(x, y); // not recorded
  EXPECT_EQ(tape.size(), 3u);
  tape.clear();
  EXPECT_EQ(tape.size(), 0u);
}

TEST_F(Tapes, NameALossThatTheyDoNotCompute) {
  expectError(ErrorCode::BadArgument, {"nothing is recorded"},
              [&] { tape.backward(loss); });
  {
    auto recording = tape.record();
    square(x, y);
  }
  expectError(ErrorCode::BadArgument, {"nothing on the tape writes"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, TakeTheSeedsOfTheUser) {
  {
    auto recording = tape.record();
    square(x, y);
  }
  y.grad().fill(2);
  tape.backward();
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 12);
}

TEST_F(Tapes, NameTheOverwriteOfANeededValue) {
  {
    auto recording = tape.record();
    square(x, y);
    square(y, z);
    square(x, y);
    sum(z, loss);
  }
  x.grad().fill(5);
  expectError(ErrorCode::CannotReplay,
              {"`square`", "entry 2", "argument 1", "overwritten", "entry 3",
               "time index"},
              [&] { tape.backward(loss); });
  EXPECT_EQ(x.grad().to_host()[0], 5);
}

TEST_F(Tapes, NameHostWritesToANeededValue) {
  {
    auto recording = tape.record();
    square(x, y);
    x.fill(2);
    square(x, z);
    sum(z, loss);
  }
  expectError(ErrorCode::CannotReplay,
              {"entry 1", "write by the host", "entry 2"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square(x, y);
    sum(y, loss);
  }
  x.fill(1);
  expectError(ErrorCode::CannotReplay, {"outside of the recording"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, AHostWriteCutsTheFlow) {
  Kernel add =
      kernel("add", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) += from(i); });
      });
  {
    auto recording = tape.record();
    add(x, y);
    y.fill(1);
    add(z, y);
    sum(y, loss);
  }
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 0);
  EXPECT_EQ(z.grad().to_host()[0], 1);
}

TEST_F(Tapes, NameAnArrayThatWouldDropADerivative) {
  Array<double> plain = device.array<double>({10});
  {
    auto recording = tape.record();
    square(x, plain);
    square(plain, y);
    sum(y, loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"entry 2", "entry 1", "argument 1", "grad)"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square(x, plain); // nobody reads it
    plain.fill(1);
    square(plain, z); // a constant by now
    square(x, y);
    sum(y, loss);
  }
  tape.backward(loss);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 6);
}

TEST_F(Tapes, NameAWriteBetweenTwoRecordings) {
  {
    auto recording = tape.record();
    sum(x, loss);
  }
  x.fill(1); // is not recorded, and would not be cleared
  {
    auto recording = tape.record();
    sum(x, loss);
  }
  expectError(ErrorCode::CannotReplay,
              {"`sum`", "entry 2", "argument 1", "outside of the recording"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, NameADerivativeThatALaunchReads) {
  Array<double> u = device.array<double>({10}, grad | dual);
  Array<double> v = device.array<double>({10}, grad | dual);
  {
    auto recording = tape.record();
    square.jvp(u, v);
    sum(v.dual(), loss);
  }
  expectError(ErrorCode::MissingGradient,
              {"`sum`", "entry 2", "entry 1", "second derivatives"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square.grad(x, y);
    sum(x.grad(), loss);
  }
  expectError(ErrorCode::MissingGradient, {"second derivatives"},
              [&] { tape.backward(loss); });
  tape.clear();
  {
    auto recording = tape.record();
    square.grad(x, y); // nobody reads it
    square(x, y);
    sum(y, loss);
  }
  x.grad().fill(0);
  tape.backward(loss);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 6);
}

TEST_F(Tapes, NameAGradientThatBackwardChanges) {
  Kernel weigh =
      kernel("weigh", [](ArrayRef<double, 1> weight, ArrayRef<double, 1> from,
                         ArrayRef<double, 1> to) {
        parallel(from.size(0), [&](Index i) { to(i) = weight(i) * from(i); });
      });
  {
    auto recording = tape.record();
    square(x, y);
    weigh(x.grad(), y, z);
    sum(z, loss);
  }
  expectError(ErrorCode::CannotReplay,
              {"`weigh`", "argument 1", "itself a gradient"},
              [&] { tape.backward(loss); });
}

TEST_F(Tapes, NameArraysThatOverlapBeforeAnyGradientChanges) {
  Kernel dot = kernel("dot", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b,
                                ArrayRef<double, 0> total) {
    parallel(a.size(0), [&](Index i) { total() += a(i) * b(i); });
  });
  {
    auto recording = tape.record();
    dot(x, x, loss);
  }
  loss.grad().fill(7);
  expectError(ErrorCode::BadArgument,
              {"`dot`", "gradient of argument 1", "gradient of argument 2"},
              [&] { tape.backward(loss); });
  EXPECT_EQ(loss.grad().to_host()[0], 7);
}

TEST_F(Tapes, RefuseAPointerToWriteThrough) {
  auto recording = tape.record();
  expectError(ErrorCode::BadArgument, {"pointer", "from_host"},
              [&] { (void)x.mutable_data(); });
}

TEST_F(Tapes, FollowATimeIndex) {
  constexpr int steps = 50;
  Array<double> s = device.array<double>({steps + 1, 10}, grad);
  std::vector<double> start(s.size());
  for (int i = 0; i < 10; ++i)
    start[i] = 0.1 * i;
  s.from_host(start);
  Kernel last =
      kernel("last", [](ArrayRef<double, 2> s, ArrayRef<double, 0> total) {
        parallel(s.size(1), [&](Index i) { total() += s(s.size(0) - 1, i); });
      });
  {
    auto recording = tape.record();
    for (int t = 0; t < steps; ++t)
      step(s, t);
    last(s, loss);
  }
  tape.backward(loss);
  double value = 0.5, slope = 1;
  for (int t = 0; t < steps; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(s.grad().to_host()[5], slope, 1e-14);
}

TEST_F(Tapes, NameARepeatedTimeIndex) {
  Array<double> s = device.array<double>({5, 10}, grad);
  {
    auto recording = tape.record();
    step(s, 0);
    step(s, 1);
    step(s, 0);
  }
  expectError(ErrorCode::CannotReplay, {"`step`", "entry 2", "entry 3"},
              [&] { tape.backward(s); });
}

TEST_F(Tapes, RecordOneThreadAtATime) {
  Tape other;
  auto recording = tape.record();
  expectError(ErrorCode::BadArgument, {"recording already"},
              [&] { (void)other.record(); });
  std::thread([&] { square(x, y); }).join();
  EXPECT_EQ(tape.size(), 0u);
  {
    auto moved = std::move(recording);
  }
  auto again = other.record();
  square(x, y);
  EXPECT_EQ(other.size(), 1u);
}

TEST_F(Tapes, NeedALossWithAGradient) {
  Array<double> plain = device.array<double>({});
  expectError(ErrorCode::MissingGradient, {"`backward`"},
              [&] { tape.backward(plain); });
}

TEST(WriteIndex, SectionsMeetIfEveryDimensionDoes) {
  using detail::mayMeet;
  EXPECT_TRUE(mayMeet({}, {{1}}));
  EXPECT_TRUE(mayMeet({{1, 2}, {}}, {{2}, {7}}));
  EXPECT_FALSE(mayMeet({{1, 2}, {}}, {{3}, {}}));
  EXPECT_FALSE(mayMeet({{1}, {4}}, {{1}, {5}}));
}
