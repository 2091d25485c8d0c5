/// Graphs do what their launches do, on every device.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/TestDevice.h"
#include "costate/costate.h"
#include "costate/syntax.h"

#include <cmath>
#include <gtest/gtest.h>
#include <thread>

COSTATE_LABEL("*", waits);

using namespace costate;
using costate::test::expectError;

namespace {

using Values = std::vector<double>;

/// y = s x^2, and a sum of it in serial code.
Kernel square() {
  return kernel("square", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                             ArrayRef<double, 0> sum, Scalar<double> s) {
    parallel(x.size(), [&](Index i) {
      y(i) = s * x(i) * x(i);
      sum() += x(i);
    });
    sum() = 2.0 * sum();
  });
}

/// z = exp(x)^2; its gradient reads back what it stored in y.
Kernel exponential() {
  return kernel("exponential", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                  ArrayRef<double, 1> z) {
    parallel(x.size(), [&](Index i) { y(i) = exp(x(i)); });
    parallel(x.size(), [&](Index i) { z(i) = y(i) * y(i); });
  });
}

class Graphs : public testing::Test {
protected:
  Array<double> made(Values values, Flags flags = none) {
    Array<double> array = device.array<double>({values.size()}, flags);
    array.from_host(values);
    return array;
  }
  Device device = test::openDevice({.memory_limit = 64u << 20});
};

TEST_F(Graphs, RepeatLaunchesWithWhatArraysHoldByThen) {
  Kernel k = square();
  Array<double> x = made({1, 2, 3}), y = made({0, 0, 0});
  Array<double> sum = device.array<double>({});
  double factor = 2;
  Graph graph = device.capture([&] {
    sum.fill(0);
    k(x, y, sum, factor);
  });
  factor = 100;
  EXPECT_EQ(graph.size(), 2u);
  EXPECT_EQ(y.to_host(), (Values{0, 0, 0})) << "capturing runs nothing";
  graph.replay();
  EXPECT_EQ(y.to_host(), (Values{2, 8, 18}));
  EXPECT_EQ(sum.to_host(), Values{12});
  x.from_host(Values{0, 1, 10});
  graph.replay();
  graph.replay();
  EXPECT_EQ(y.to_host(), (Values{0, 2, 200}));
  EXPECT_EQ(sum.to_host(), Values{22});
}

TEST_F(Graphs, HoldGradientsAndTangents) {
  Kernel k = square();
  Array<double> x = made({1, 2, 3}, grad | dual),
                y = made({0, 0, 0}, grad | dual);
  Array<double> sum = device.array<double>({}, grad | dual);
  Graph graph = device.capture([&] {
    sum.fill(0);
    k(x, y, sum, 2.0);
    y.grad().fill(1);
    sum.grad().fill(0.5);
    k.grad(x, y, sum, 2.0);
    sum.dual().fill(0);
    k.jvp(x, y, sum, 2.0);
  });
  x.dual().fill(10);
  for (double times : {1, 2}) {
    graph.replay();
    EXPECT_EQ(x.grad().to_host(), (Values{times * 5, times * 9, times * 13}));
    EXPECT_EQ(y.dual().to_host(), (Values{40, 80, 120}));
  }
}

TEST_F(Graphs, ReplayWithoutWaitingAndCountWhatTheyDo) {
  Kernel k = square();
  Array<double> x = made({1, 2, 3}), y = made({0, 0, 0});
  Array<double> sum = device.array<double>({});
  k(x, y, sum, 2.0);
  device.reset_statistics();
  k(x, y, sum, 2.0);
  sum.fill(1);
  Statistics once = device.statistics();
  Graph graph = device.capture([&] {
    k(x, y, sum, 2.0);
    sum.fill(1);
  });
  device.reset_statistics();
  for (int i = 0; i < 10; ++i)
    graph.replay();
  Statistics seen = device.statistics();
  EXPECT_EQ(seen.launches, 10 * once.launches);
  EXPECT_EQ(seen.fills, 10 * once.fills);
  EXPECT_EQ(seen.synchronizations, 0u);
  EXPECT_EQ(seen.uploads + seen.downloads + seen.copies, 0u);
}

/// The gradient for what all work items share is a sum over them.
Kernel scaled() {
  return kernel("scaled", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    Var<double> s = x(0);
    parallel(x.size(), [&](Index i) { y(i) = s * x(i); });
  });
}

TEST_F(Graphs, KeepWhatTheyNeed) {
  Graph graph;
  Array<double> gradient;
  size_t before = device.current_bytes();
  {
    Kernel k = scaled();
    Array<double> x = made({1, 2, 3}, grad), y = made({0, 0, 0}, grad);
    gradient = x.grad();
    graph = device.capture([&] {
      y.grad().fill(1);
      k.grad(x, y);
    });
  }
  EXPECT_GT(device.current_bytes(), before);
  // A larger launch needs other scratch memory, and takes what was freed.
  Kernel k = scaled();
  Array<double> x = device.array<double>({100000}, grad);
  Array<double> y = device.array<double>({100000}, grad);
  x.fill(1);
  y.grad().fill(1);
  k.grad(x, y);
  graph.replay();
  EXPECT_EQ(gradient.to_host(), (Values{1 + 6, 1, 1}));
  EXPECT_EQ(x.grad().to_host()[0], 100001);
}

TEST_F(Graphs, MayHoldALaunchAndTheGradientThatReadsItBack) {
  Kernel k = exponential();
  Array<double> x = made({0}, grad), y = made({0}, grad), z = made({0}, grad);
  Graph graph = device.capture([&] {
    k(x, y, z);
    z.grad().fill(1);
    k.grad(x, y, z);
  });
  x.fill(0.5);
  for (int times : {1, 2}) {
    graph.replay();
    EXPECT_NEAR(x.grad().to_host()[0], times * 2 * std::exp(1.0), 1e-12);
  }
  k.grad(x, y, z); // what the graph did last counts
}

TEST_F(Graphs, RefuseAGradientOfALaunchThatTheyDoNotHold) {
  Kernel k = exponential();
  Array<double> x = made({0}, grad), y = made({0}, grad), z = made({0}, grad);
  k(x, y, z);
  expectError(ErrorCode::CannotReplay, {"`exponential`", "in this graph"},
              [&] { device.capture([&] { k.grad(x, y, z); }); });
  expectError(ErrorCode::CannotReplay, {"was written since"}, [&] {
    device.capture([&] {
      k(x, y, z);
      y.fill(3);
      k.grad(x, y, z);
    });
  });
  Array<double> v = made({2}, grad), w = made({0}, grad);
  expectError(ErrorCode::CannotReplay, {"was written since"}, [&] {
    device.capture([&] {
      k(x, y, z);
      k(v, y, w);
      k.grad(x, y, z);
    });
  });
  k.grad(x, y, z); // nothing of that has run
  device.capture([&] { k(v, y, w); }).replay();
  expectError(ErrorCode::CannotReplay, {"was written since"},
              [&] { k.grad(x, y, z); });
  Graph graph = device.capture([&] {
    k(x, y, z);
    y.fill(3);
  });
  graph.replay();
  expectError(ErrorCode::CannotReplay, {"was written since"},
              [&] { k.grad(x, y, z); });
}

TEST_F(Graphs, RefuseWhatTheyCannotRepeat) {
  Kernel k = square();
  Array<double> x = made({1, 2, 3}, grad), y = made({0, 0, 0}, grad);
  Array<double> sum = device.array<double>({}, grad);
  auto refuses = [&](const char *what, const std::function<void()> &body) {
    expectError(ErrorCode::CannotCapture, {what},
                [&] { device.capture(body); });
  };
  refuses("copy from the host", [&] { x.from_host(Values{1, 1, 1}); });
  refuses("copy to the host", [&] { x.to_host(); });
  refuses("wait for the device", [&] { device.synchronize(); });
  refuses("initial state", [&] { k.grad(initial_state, x, y, sum, 1.0); });
  refuses("check a gradient", [&] { check_gradient(k, x, y, sum, 1.0); });
  refuses("capture another one", [&] { device.capture([] {}); });
  refuses("record a `Tape`", [&] {
    Tape tape;
    auto recording = tape.record();
  });
  Graph graph = device.capture([&] { k(x, y, sum, 1.0); });
  refuses("replay another one", [&] { graph.replay(); });
  Tape tape;
  {
    auto recording = tape.record();
    expectError(ErrorCode::CannotCapture, {"`Tape`", "replay"},
                [&] { graph.replay(); });
    refuses("`Tape`", [] {});
    k(x, y, sum, 1.0);
  }
  refuses("reverse a `Tape`", [&] { tape.backward(sum); });
  Device other = test::openDevice();
  Array<double> foreign = other.array<double>({3});
  expectError(ErrorCode::BadArgument, {"another device"},
              [&] { device.capture([&] { foreign.fill(1); }); });
  graph.replay();
}

TEST_F(Graphs, OfGradientsWithTapesAreRightOrRefusedByName) {
  Kernel k = kernel("powers", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                 ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        v = v * v;
      }
      y(i) = v;
    });
  });
  Array<double> x = made({1.5, 0.5}, grad), y = made({0, 0}, grad);
  Array<int> n = device.array<int>({2});
  n.from_host(std::vector<int>{1, 3});
  Graph graph;
  try {
    graph = device.capture([&] {
      y.grad().fill(1);
      k.grad(x, n, y);
    });
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::CannotCapture) << error.what();
    EXPECT_NE(device.name(), "cpu") << error.what();
    return;
  }
  graph.replay();
  graph.replay();
  EXPECT_EQ(x.grad().to_host(), (Values{2 * 3, 2 * 8 * 0.0078125}));
}

TEST_F(Graphs, OfKernelsThatSteerTheHostAreRefusedOnGpus) {
  Kernel k = kernel("steered", [](ArrayRef<int, 1> n, ArrayRef<int, 1> y) {
    parallel(n(0), [&](Index i) { y(i) = 1; });
  });
  Array<int> n = device.array<int>({1}), y = device.array<int>({4});
  n.fill(3);
  auto capture = [&] { return device.capture([&] { k(n, y); }); };
  if (device.name() == "cpu")
    capture().replay();
  else
    expectError(ErrorCode::CannotCapture,
                {"kernel `steered` cannot be captured", "outside of the graph"},
                capture);
  k(n, y);
  EXPECT_EQ(y.to_host(), (std::vector<int>{1, 1, 1, 0}));
}

TEST_F(Graphs, MakeTapesCopyWhatTheyOverwrite) {
  Kernel k = square(), other = scaled();
  Array<double> x = made({1, 2, 3}, grad), y = made({0, 0, 0}, grad);
  Array<double> z = made({2, 3, 4});
  Array<double> sum = device.array<double>({}, grad);
  for (const Graph &graph : {device.capture([&] { x.fill(9); }),
                             device.capture([&] { other(z, x); })}) {
    x.from_host(Values{1, 2, 3});
    x.grad().fill(0);
    Tape tape;
    {
      auto recording = tape.record();
      k(x, y, sum, 1.0);
    }
    graph.replay();
    Values now = x.to_host();
    y.grad().fill(1);
    sum.grad().fill(0);
    tape.backward();
    EXPECT_EQ(x.grad().to_host(), (Values{2, 4, 6}));
    EXPECT_EQ(x.to_host(), now);
  }
}

TEST_F(Graphs, OfKernelsThatCheckTellWhatTheyFindOrAreRefused) {
  Kernel k = kernel("checked",
                    [](ArrayRef<int, 1> at, ArrayRef<double, 1> y) {
                      parallel(at.size(), [&](Index i) { y(at(i)) = 1.0; });
                    },
                    {.debug = true});
  Array<int> at = device.array<int>({2});
  Array<double> y = made({0, 0});
  at.from_host(std::vector<int>{0, 1});
  Graph graph;
  try {
    graph = device.capture([&] { k(at, y); });
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ErrorCode::CannotCapture) << error.what();
    EXPECT_NE(device.name(), "cpu") << error.what();
    return;
  }
  graph.replay();
  EXPECT_EQ(y.to_host(), (Values{1, 1}));
  at.from_host(std::vector<int>{0, 7});
  expectError(ErrorCode::OutOfRange, {"`checked`", "7"}, [&] {
    graph.replay();
    device.synchronize();
  });
  at.from_host(std::vector<int>{0, 1});
  graph.replay();
  device.synchronize();
}

TEST_F(Graphs, DoNotHoldWhatOtherThreadsDo) {
  Kernel k = square();
  Array<double> x = made({1, 2, 3}), y = made({0, 0, 0});
  Array<double> a = made({3}), b = made({0});
  Array<double> sum = device.array<double>({}), rest = device.array<double>({});
  Graph graph = device.capture([&] {
    std::jthread([&] { k(a, b, rest, 1.0); }).join();
    k(x, y, sum, 1.0);
  });
  EXPECT_EQ(graph.size(), 1u);
  EXPECT_EQ(b.to_host(), Values{9});
  b.fill(0);
  graph.replay();
  EXPECT_EQ(b.to_host(), Values{0});
}

TEST_F(Graphs, OfNothingDoNothing) {
  Graph().replay();
  device.capture([] {}).replay();
  EXPECT_EQ(Graph().size(), 0u);
}

TEST_F(Graphs, AFailureInTheBodyEndsTheCapture) {
  EXPECT_THROW(device.capture([] { throw 1; }), int);
  Array<double> x = made({1});
  x.fill(2);
  EXPECT_EQ(x.to_host(), Values{2});
}

TEST_F(Graphs, DevicesWithoutStreamsSaySo) {
  if (costate::test::kindOf(device) == "cuda")
    GTEST_SKIP() << "has streams";
  int stream = 0;
  expectError(ErrorCode::BadArgument, {"has no streams"},
              [&] { device.use_stream(&stream); });
  device.use_own_stream();
}

} // namespace
