#include "api/TapeTest.h"

#include <cmath>

using namespace costate;
using namespace costate::test;

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

TEST_F(Tapes, TakeTheSeedsOfTheUser) {
  {
    auto recording = tape.record();
    square(x, y);
  }
  y.grad().fill(2);
  tape.backward();
  EXPECT_DOUBLE_EQ(x.grad().to_host()[0], 12);
}

TEST_F(Tapes, ClearTheGradientsThatTheyAreAskedToClear) {
  {
    auto recording = tape.record();
    square(x, y);
    sum(y, loss);
  }
  x.grad().fill(100);
  z.grad().fill(100);
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_host()[0], 106);
  for (int round = 0; round < 2; ++round) {
    tape.backward(loss, {.clear_inputs = true});
    EXPECT_EQ(x.grad().to_host()[0], 6);
  }
  y.grad().fill(2);
  loss.grad().fill(0);
  tape.backward({.clear_inputs = true}); // seeds stay
  EXPECT_EQ(x.grad().to_host()[0], 12);
  EXPECT_EQ(z.grad().to_host()[0], 100);
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

/// Of the elements that it writes, and keeps these alone.
TEST_F(Tapes, AHostWriteOfAnElementCutsThatElement) {
  Array<double> w = device.array<double>({2, 10}, grad);
  auto put = [](AnyArray array, std::vector<int64_t> index,
                std::vector<double> values) {
    array.write_at(index, values.data(), values.size() * sizeof(double));
  };
  Kernel both =
      kernel("both", [](ArrayRef<double, 2> from, ArrayRef<double, 0> total) {
        parallel(from.size(1), [&](Index i) {
          total() += from(0, i) * from(0, i) + from(1, i);
        });
      });
  w.fill(3);
  {
    auto recording = tape.record();
    put(w, {0, 4}, {7}); // before the first launch
    both(w, loss);
    put(w, {0, 4}, {8});
    put(w, {1}, std::vector<double>(10, 5));
    both(w, loss);
    put(loss, {}, {100});
    both(w, loss);
  }
  EXPECT_EQ(tape.size(), 7u);
  EXPECT_EQ(tape.report().bytes, sizeof(double));
  EXPECT_EQ(loss.to_host()[0], 100 + 9 * 9 + 64 + 50);
  tape.backward(loss);
  std::vector<double> slopes = w.grad().to_host();
  EXPECT_EQ(slopes[3], 6);
  EXPECT_EQ(slopes[4], 0);
  EXPECT_EQ(slopes[14], 0);
  expectError(ErrorCode::BadArgument, {"(2, 0)", "(2, 10)"},
              [&] { put(w, {2, 0}, {1}); });
  expectError(ErrorCode::BadArgument, {"10 numbers", "has 1"},
              [&] { put(w, {0}, {1}); });
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
  EXPECT_EQ(tape.report().peak_bytes, 0u);
  tape.backward(loss);
  double value = 0.5, slope = 1;
  for (int t = 0; t < steps; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(s.grad().to_host()[5], slope, 1e-14);
}

namespace {
/// A recording whose first launch, the last to be reversed, needs more memory
/// for its gradient than there is.
class FailingTapes : public Tapes {
protected:
  Kernel deep =
      kernel("deep", [](ArrayRef<double, 1> from, ArrayRef<int, 0> iterations,
                        ArrayRef<double, 1> to) {
        // State in an array cannot run again from a checkpoint.
        parallel(1, [&](Index) {
          to(0) = to(0) + from(0);
          FOR (k, 0, iterations()) {
            to(0) = sin(to(0));
          }
        });
      });
  void record(int64_t size) {
    small = Device::open("cpu", {.threads = 1, .memory_limit = 12 << 20});
    a = small.array<double>({size}, grad);
    b = small.array<double>({size}, grad);
    total = small.array<double>({}, grad);
    iterations = small.array<int>({});
    iterations.fill(3);
    a.fill(3);
    auto recording = tape.record();
    deep(a, iterations, b);
    square(a, b);
    sum(b, total);
  }
  void makeDeep() {
    // The bound is needed too: the copy is what backward sees.
    tape.clear();
    iterations.fill(2000000);
    auto recording = tape.record();
    deep(a, iterations, b);
    square(a, b);
    sum(b, total);
  }

  Device small = device;
  Array<double> a, b, total;
  Array<int> iterations;
};
} // namespace

TEST_F(FailingTapes, LeaveSmallGradientsAsTheyWere) {
  record(100);
  makeDeep();
  a.grad().fill(1);
  b.grad().fill(2);
  total.grad().fill(3);
  a.fill(4); // needed
  expectError(ErrorCode::OutOfMemory, {"`deep`"},
              [&] { tape.backward(total); });
  EXPECT_EQ(a.grad().to_host(), std::vector<double>(100, 1));
  EXPECT_EQ(b.grad().to_host(), std::vector<double>(100, 2));
  EXPECT_EQ(total.grad().to_host()[0], 3);
  EXPECT_EQ(a.to_host(), std::vector<double>(100, 4));
  a.fill(5);          // the recording is not in use any more
  iterations.fill(2); // and neither is the bound that backward used
  expectError(ErrorCode::OutOfMemory, {"`deep`"},
              [&] { tape.backward(total); });
}

TEST_F(FailingTapes, SayThatLargeGradientsAreNotUsable) {
  record(100000);
  makeDeep();
  a.grad().fill(1);
  expectError(ErrorCode::OutOfMemory,
              {"`deep`", "not usable", "all_or_nothing"},
              [&] { tape.backward(total); });
  a.grad().fill(1);
  expectError(ErrorCode::OutOfMemory, {"`deep`"},
              [&] { tape.backward(total, {.all_or_nothing = true}); });
  EXPECT_EQ(a.grad().to_host(), std::vector<double>(100000, 1));
}
