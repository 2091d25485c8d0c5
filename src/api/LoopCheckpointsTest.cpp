/// Loops of a kernel whose gradients run them again from checkpoints.

#include "conformance/Errors.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>

using namespace costate;
using test::expectError;

namespace {

constexpr int iterations = 20000;

/// v <- v sin v + 0.7 w, `iterations` times for each number.
struct Recurrence {
  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = device.array<double>({5}, grad),
                w = device.array<double>({}, grad),
                y = device.array<double>({5}, grad);

  std::vector<double> gradientOf(const Kernel &k, int n = iterations) {
    x.from_host({0.5, -0.3, 0.1, 1.2, 2});
    w.fill(1);
    x.grad().fill(0);
    y.grad().fill(1);
    k(x, w, y, n);
    k.grad(x, w, y, n);
    return x.grad().to_host();
  }
};

using X = ArrayRef<double, 1>;
using W = ArrayRef<double, 0>;

Kernel counted(int64_t most, KernelOptions options = {}) {
  return kernel(
      "counted",
      [=](X x, W w, X y, Scalar<int> n) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          auto step = [&](Index) { v = v * sin(v) + 0.7 * w(); };
          if (most)
            for_(0, n, checkpoints(most), step);
          else
            for_(0, n, step);
          y(i) = v;
        });
      },
      options);
}

Kernel waiting(bool cut) {
  return kernel("waiting", [=](X x, W w, X y, Scalar<int> n) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      Var<int> t = 0;
      auto body = [&] {
        v = v * sin(v) + 0.7 * w();
        t += 1;
      };
      if (cut)
        WHILE ((t < n) & (v < 9), checkpoints(40)) {
          body();
        }
      else
        WHILE ((t < n) & (v < 9)) {
          body();
        }
      y(i) = v;
    });
  });
}

size_t tapeOf(const std::string &report) {
  size_t at = report.rfind("last launch: ") + 13, end = 0;
  double number = std::stod(report.substr(at), &end);
  std::string unit = report.substr(at + end + 1, 3);
  return static_cast<size_t>(number * (unit == "MiB"   ? 1048576
                                       : unit == "KiB" ? 1024
                                                       : 1));
}

} // namespace

TEST(LoopCheckpoints, ChangeNoBits) {
  Recurrence r;
  std::vector<double> whole = r.gradientOf(counted(0));
  for (int64_t most : {1, 2, 7, 150, 1000000})
    EXPECT_EQ(r.gradientOf(counted(most)), whole) << most;
  for (int n : {0, 1, 2, 3})
    EXPECT_EQ(r.gradientOf(counted(2), n), r.gradientOf(counted(0), n)) << n;
}

TEST(LoopCheckpoints, SaveMemory) {
  Recurrence r;
  Kernel whole = counted(0, {.lanes = 1}), cut = counted(100, {.lanes = 1});
  r.gradientOf(whole);
  r.gradientOf(cut);
  EXPECT_GE(tapeOf(whole.report()), 16u * iterations);
  EXPECT_LE(tapeOf(cut.report()), 2 * (100 * 8u + iterations / 100 * 16u));
  EXPECT_NE(cut.report().find("runs again from at most 100 checkpoints of 8 "
                              "bytes; an iteration saves 16 bytes"),
            std::string::npos)
      << cut.report();
}

TEST(LoopCheckpoints, OfLoopsOfUnknownLength) {
  Recurrence r;
  EXPECT_EQ(r.gradientOf(waiting(true)), r.gradientOf(waiting(false)));
}

TEST(LoopCheckpoints, AreAsManyAsABudgetAsksFor) {
  Recurrence r;
  std::vector<double> whole = r.gradientOf(counted(0));
  for (size_t budget : {20u << 10, 100u << 10, 1u << 20}) {
    Kernel k = counted(0, {.tape_budget = budget});
    for (int launch = 0; launch < 2; ++launch)
      EXPECT_EQ(r.gradientOf(k), whole);
    EXPECT_LE(tapeOf(k.report()), budget);
    EXPECT_NE(k.report().find("within the tape budget"), std::string::npos);
  }
}

TEST(LoopCheckpoints, AreAsManyAsADeviceAsksFor) {
  Recurrence r;
  std::vector<double> whole = r.gradientOf(counted(0));
  Recurrence small{
      Device::open("cpu", {.threads = 3, .tape_budget = 50 << 10})};
  EXPECT_EQ(small.gradientOf(counted(0)), whole);
}

TEST(LoopCheckpoints, TakeThePlaceOfMemoryThatIsNotThere) {
  Recurrence r;
  constexpr int many = 400000;
  std::vector<double> whole = r.gradientOf(counted(0), many);
  Recurrence small{
      Device::open("cpu", {.threads = 2, .memory_limit = 2 << 20})};
  EXPECT_EQ(small.gradientOf(counted(0), many), whole);
  EXPECT_LE(small.device.peak_bytes(), 2u << 20);
}

TEST(LoopCheckpoints, LeaveSecondDerivativesAsTheyAre) {
  std::vector<std::vector<double>> found;
  for (int64_t most : {0, 2, 30}) {
    Device device = Device::open("cpu");
    auto x = device.array<double>({3}, grad | dual),
         y = device.array<double>({3}, grad | dual),
         w = device.array<double>({}, grad | dual);
    x.from_host({0.5, 0.3, 1.2});
    w.fill(1);
    x.dual().fill(1);
    Kernel k = counted(most);
    k.jvp(x, w, y, 300);
    y.grad().fill(1);
    k.gradient().jvp(x, w, y, 300);
    found.push_back(x.grad().dual().to_host());
  }
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
  EXPECT_NE(found[0][0], 0);
}

TEST(LoopCheckpoints, NeedTheStateOfALoopInVariables) {
  Kernel k = kernel("inPlace", [](X x, Scalar<int> n) {
    parallel(x.size(), [&](Index i) {
      FOR (t, 0, n, checkpoints(3)) {
        x(i) = sin(x(i));
      }
    });
  });
  auto x = Device::open("cpu").array<double>({3}, grad);
  expectError(ErrorCode::CannotReplay,
              {"LoopCheckpointsTest.cpp:", "cannot run again from checkpoints",
               "overwrites elements of an array", "snapshots"},
              [&] { k.grad(initial_state, x, 9); });
}

TEST(LoopCheckpoints, AreMoreThanNone) {
  for (int64_t most : {0, -2})
    expectError(ErrorCode::BadKernel,
                {"a loop cannot have " + std::to_string(most) + " checkpoints",
                 "LoopCheckpointsTest.cpp:"},
                [&] {
                  kernel("k", [=](X x) {
                    FOR (t, 0, 3, checkpoints(most)) {
                      x(t) = 1;
                    }
                  });
                });
}
