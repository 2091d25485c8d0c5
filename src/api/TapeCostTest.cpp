/// What a recording costs by its length.

#include "conformance/Errors.h"
#include "costate/costate.h"

#include <cmath>
#include <optional>
#include <sys/resource.h>

using namespace costate;

namespace {
class TapeCosts : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 1});
  Array<double> x = device.array<double>({4}, grad);
  Array<double> v = device.array<double>({4}, grad);
  Array<double> loss = device.array<double>({}, grad);
  Kernel sum =
      kernel("sum", [](ArrayRef<double, 1> from, ArrayRef<double, 0> total) {
        parallel(from.size(0), [&](Index i) { total() += from(i); });
      });

  /// What is copied from array to array.
  struct Copies {
    uint64_t recorded, reversed;
  };
  /// In `steps` calls of `step`.
  Copies copiesOf(int steps, const std::function<void(int)> &step) {
    x.fill(0.5);
    v.fill(0.5);
    Tape tape;
    device.reset_statistics();
    {
      auto recording = tape.record();
      for (int t = 0; t < steps; ++t)
        step(t);
      sum(x, loss);
    }
    uint64_t recorded = device.statistics().copies;
    device.reset_statistics();
    tape.backward(loss, {.clear_inputs = true});
    return {recorded, device.statistics().copies};
  }
  void expectLinear(const std::function<void(int)> &step) {
    Copies few = copiesOf(50, step), many = copiesOf(100, step);
    EXPECT_GE(few.recorded + few.reversed, 50u);
    EXPECT_LE(many.recorded, 2 * few.recorded + 4);
    EXPECT_LE(many.reversed, 2 * few.reversed + 4);
  }
  /// One copy of each array that is overwritten, and one of each gradient.
  void expectUnmoved(uint64_t overwritten,
                     const std::function<void(int)> &step) {
    Copies copies = copiesOf(50, step);
    EXPECT_LE(copies.recorded, 50 * overwritten);
    EXPECT_LE(copies.reversed, 3u);
  }
};
} // namespace

TEST_F(TapeCosts, GrowWithTheLaunchesThatOverwriteWhatTheyRead) {
  Kernel sine = kernel("sine", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  Kernel both =
      kernel("both", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) {
          b(i) = sin(b(i));
          a(i) = a(i) * b(i);
        });
      });
  Kernel add = kernel("add", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
    parallel(a.size(0), [&](Index i) { b(i) += sin(a(i)); });
    parallel(a.size(0), [&](Index i) { a(i) += 0.1 * b(i); });
  });
  expectLinear([&](int) { sine(x); });
  expectLinear([&](int) { both(x, v); });
  expectLinear([&](int) { add(x, v); });
  expectLinear([&](int t) { t % 2 ? both(x, v) : sine(x); });
  copiesOf(60, [&](int) { sine(x); });
  double value = 0.5, slope = 1;
  for (int t = 0; t < 60; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(x.grad().to_host()[2], slope, 1e-14);
}

TEST_F(TapeCosts, AreOneCopyWhereArraysAreOverwrittenAsAWhole) {
  Kernel square =
      kernel("square", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to) {
        parallel(from.size(0),
                 [&](Index i) { to(i) = from(i) - 0.1 * from(i) * from(i); });
      });
  Kernel sine = kernel("sine", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  expectUnmoved(1, [&](int) { sine(x); });
  expectUnmoved(2, [&](int) {
    square(x, v);
    square(v, x);
  });
  double value = 0.5, slope = 1;
  for (int t = 0; t < 100; ++t) {
    slope *= 1 - 0.2 * value;
    value -= 0.1 * value * value;
  }
  EXPECT_NEAR(x.grad().to_host()[2], slope, 1e-14);
  EXPECT_NEAR(x.to_host()[2], value, 1e-14);
}

#ifndef COSTATE_SANITIZE
static long pageFaults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

TEST_F(TapeCosts, AreThePagesOfCopiesOnceForAllTapes) {
  constexpr int steps = 16, pages = 100;
  Array<double> large = device.array<double>({pages * 512}, grad);
  Kernel sine = kernel("sine", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  long faults = 0;
  size_t held = 0;
  for (int round = 0; round < 3; ++round) {
    Tape tape;
    faults = pageFaults();
    {
      auto recording = tape.record();
      for (int t = 0; t < steps; ++t)
        sine(large);
      sum(large, loss);
    }
    tape.backward(loss);
    held = tape.report().bytes;
    faults = pageFaults() - faults;
  }
  EXPECT_EQ(held, size_t(steps * pages * 4096));
  EXPECT_LT(faults, pages);
}
#endif

TEST_F(TapeCosts, LeaveTheirMemoryToArrays) {
  Device small = Device::open("cpu", {.threads = 1, .memory_limit = 32 << 20});
  Kernel sine = kernel("sine", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  for (int round = 0; round < 3; ++round) {
    Array<double> a = small.array<double>({1 << 17}, grad);
    Tape tape;
    {
      auto recording = tape.record();
      for (int t = 0; t < 20; ++t)
        sine(a);
    }
    EXPECT_GT(small.current_bytes(), size_t(20 << 20));
    tape.clear();
    EXPECT_LT(small.current_bytes(), size_t(3 << 20));
    Array<double> most = small.array<double>({29 << 17});
    EXPECT_EQ(most.to_host()[1234567], 0);
  }
}

TEST_F(TapeCosts, GrowWithTheLaunchesThatOverwriteOneElement) {
  Kernel sine = kernel(
      "sine", [](ArrayRef<double, 1> a, Scalar<int> t) { a(t) = sin(a(t)); });
  expectLinear([&](int t) { sine(x, t % 4); });
}

TEST_F(TapeCosts, AreOneCopyWhereSlotsAreOverwritten) {
  Array<double> ring = device.array<double>({2, 4}, grad);
  ring.fill(0.5);
  Kernel step = kernel(
      "step", [](ArrayRef<double, 2> a, Scalar<int> from, Scalar<int> to) {
        parallel(a.size(1), [&](Index i) { a(to, i) = sin(a(from, i)); });
      });
  Kernel fold =
      kernel("fold", [](ArrayRef<double, 2> a, ArrayRef<double, 1> b) {
        parallel(b.size(0), [&](Index i) { b(i) = a(0, i); });
      });
  expectUnmoved(1, [&](int t) {
    step(ring, t % 2, 1 - t % 2);
    if (t == 49)
      fold(ring, x);
  });
  double value = 0.5, slope = 1;
  for (int t = 0; t < 50; ++t) {
    slope *= std::cos(value);
    value = std::sin(value);
  }
  EXPECT_NEAR(x.to_host()[1], value, 1e-14);
  EXPECT_NEAR(ring.grad().to_host()[1], slope, 1e-14);
}

/// However many elements an array has.
TEST_F(TapeCosts, GrowWithTheLaunchesThatOverwriteAComponent) {
  Kernel wave = kernel("wave", [](ArrayRef<double, 2> a) {
    parallel(a.size(0), [&](Index i) {
      IF (a(i, 0) > 0.25) {
        a(i, 1) = sin(a(i, 1));
      }
    });
  });
  Kernel sumAll =
      kernel("sumAll", [](ArrayRef<double, 2> from, ArrayRef<double, 0> total) {
        parallel(from.size(0), [&](Index i) { total() += from(i, 1); });
      });
  for (const char *name : {"cpu", "simt"}) {
    Device device = Device::open(name, {.threads = 1});
    auto copies = [&](int64_t count) {
      Array<double> a = device.array<double>({count, 2}, grad);
      Array<double> total = device.array<double>({}, grad);
      a.fill(1);
      Tape tape;
      {
        auto recording = tape.record();
        for (int t = 0; t < 3; ++t)
          wave(a);
        sumAll(a, total);
      }
      device.reset_statistics();
      tape.backward(total);
      EXPECT_NEAR(a.grad().to_host()[1],
                  std::cos(1) * std::cos(std::sin(1)) *
                      std::cos(std::sin(std::sin(1))),
                  1e-14);
      return device.statistics().copies;
    };
    const uint64_t few = copies(2);
    EXPECT_GE(few, 2u * 3) << name;
    EXPECT_EQ(copies(2000), few) << name;
  }
}

TEST_F(TapeCosts, GrowWithWritesOfTheHostBetweenLaunches) {
  Kernel mix = kernel("mix", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)) * b(i); });
  });
  expectLinear([&](int t) {
    v.fill(1 + 0.01 * t);
    mix(x, v);
  });
}

TEST_F(TapeCosts, GrowWithCustomLaunches) {
  Kernel sine = kernel("sine", [](ArrayRef<double, 1> a) {
    parallel(a.size(0), [&](Index i) { a(i) = sin(a(i)); });
  });
  CustomLaunch part{.name = "part",
                    .reads = {x},
                    .writes = {x},
                    .primal = [&] { sine(x); },
                    .gradient = [&] { sine.grad(initial_state, x); }};
  expectLinear([&](int) { part(); });
}

/// Nobody can reverse what is recorded then.
TEST_F(TapeCosts, EndWithTheTape) {
  std::optional<Tape> tape(std::in_place);
  auto *left = new Tape::Recording(tape->record());
  x.fill(1);
  tape.reset();
  x.fill(2);
  Tape other;
  {
    auto recording = other.record();
    x.fill(3);
  }
  EXPECT_EQ(other.size(), 1u);
  delete left;
  auto recording = other.record();
  x.fill(4);
  EXPECT_EQ(other.size(), 2u);
}
