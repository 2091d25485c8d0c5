#include "api/TestKernels.h"
#include "conformance/Errors.h"
#include "conformance/TestDevice.h"
#include "costate/cache.h"
#include "costate/detail/bound_arguments.h"

#include <cmath>
#include <gmock/gmock.h>
#include <thread>

using namespace costate;
using costate::test::expectError;
using testing::ElementsAre;

namespace {
class Kernels : public testing::Test {
protected:
  Device device = Device::open("cpu", {.threads = 2});
  Array<double> x = device.array<double>({100}, grad | dual);
  Array<double> y = device.array<double>({100}, grad | dual);
  Array<double> loss = device.array<double>({}, grad | dual);

  Kernel scale =
      kernel("scale", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to,
                         Scalar<double> factor) {
        parallel(from.size(0),
                 [&](Index i) { to(i) = factor * from(i) * from(i); });
      });
  Kernel sum = test::makeSum();
  Kernel loop = test::makeLoop();
  Kernel inPlace = test::makeLoopInPlace();

  void SetUp() override { x.from_host(test::risingValues()); }
};
} // namespace

TEST_F(Kernels, RunForwardsAndBackwards) {
  scale(x, y, 3);
  EXPECT_DOUBLE_EQ(y.to_host()[10], 3 * 0.6 * 0.6);
  y.grad().fill(1);
  scale.grad(x, y, 3);
  EXPECT_DOUBLE_EQ(x.grad().to_host()[10], 6 * 0.6);
  EXPECT_EQ(y.grad().to_host()[10], 0); // consumed by the store
  x.dual().fill(1);
  scale.jvp(x, y, 3);
  EXPECT_DOUBLE_EQ(y.dual().to_host()[10], 6 * 0.6);
}

TEST_F(Kernels, AcceptIntegersOfAnyNameAndArraysOfLongAndLongLong) {
  Kernel fill = kernel("fill", [](ArrayRef<int64_t, 1> a, Scalar<int> value) {
    parallel(a.size(0), [&](Index i) { a(i) = cast<int64_t>(value); });
  });
  Array<long> a = device.array<long>({3});
  Array<long long> b = device.array<long long>({3});
  fill(a, 7u);
  fill(b, 8.0);
  EXPECT_EQ(a.to_host()[2], 7);
  EXPECT_EQ(b.to_host()[2], 8);
  expectError(ErrorCode::BadArgument,
              {"`fill`", "argument 2", "i32 scalar", "1.5"},
              [&] { fill(a, 1.5); });
  expectError(ErrorCode::BadArgument, {"5000000000"},
              [&] { fill(a, 5000000000); });
  Kernel natural = kernel("natural", [](ArrayRef<int, 1> a, Scalar<uint32_t> n,
                                        Scalar<float> f, Scalar<bool> b) {
    a(0) = cast<int>(n) + cast<int>(f) + cast<int>(b);
  });
  Array<int> c = device.array<int>({1});
  expectError(ErrorCode::BadArgument, {"argument 2", "u32", "-1"},
              [&] { natural(c, -1, 1.0, true); });
  expectError(ErrorCode::BadArgument, {"argument 3", "1e+300"},
              [&] { natural(c, 1, 1e300, true); });
  expectError(ErrorCode::BadArgument, {"argument 4", "2"},
              [&] { natural(c, 1, 1, 2); });
  natural(c, 4294967295u, 0.1, 1);
}

TEST_F(Kernels, NameTheArgumentThatDoesNotFit) {
  Array<float> narrow = device.array<float>({100});
  Array<double> square = device.array<double>({10, 10});
  expectError(ErrorCode::BadArgument,
              {"`scale`", "KernelTest.cpp:", "takes 3", "given 2"},
              [&] { scale(x, y); });
  expectError(ErrorCode::BadArgument,
              {"argument 2", "f64 array of rank 1", "f32"},
              [&] { scale(x, narrow, 1.0); });
  expectError(ErrorCode::BadArgument, {"argument 1", "rank 2", "(10, 10)"},
              [&] { scale(square, y, 1.0); });
  expectError(ErrorCode::BadArgument, {"argument 1", "number 1"},
              [&] { scale(1, y, 1.0); });
  expectError(ErrorCode::BadArgument, {"argument 3", "f64 scalar", "array"},
              [&] { scale(x, y, x); });
  expectError(ErrorCode::BadArgument, {"argument 1", "without storage"},
              [&] { scale(Array<double>(), y, 1.0); });
  expectError(ErrorCode::BadArgument, {"empty"}, [&] { Kernel()(x); });
  Device other = Device::open("cpu", {.threads = 1});
  expectError(ErrorCode::BadArgument,
              {"argument 2", "another device", "argument 1"},
              [&] { scale(x, other.array<double>({100}), 1.0); });
}

TEST_F(Kernels, RefuseOverlapsOnlyWhereTheyAreWritten) {
  expectError(ErrorCode::BadArgument,
              {"`scale`", "argument 1", "argument 2", "same array"},
              [&] { scale(x, x, 1.0); });
  Kernel dot = kernel("dot", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b,
                                ArrayRef<double, 0> total) {
    parallel(a.size(0), [&](Index i) { total() += a(i) * b(i); });
  });
  dot(x, x, loss);
  expectError(ErrorCode::BadArgument,
              {"gradient of argument 1", "gradient of argument 2"},
              [&] { dot.grad(x, x, loss); });
  expectError(ErrorCode::BadArgument, {"gradient of argument 1", "same array"},
              [&] { dot.grad(x, x.grad(), loss); });
}

/// A gradient has no part in an array that its kernel only stores to.
TEST_F(Kernels, MayStoreToTheGradientOfAnotherArgument) {
  Kernel clear =
      kernel("clear", [](ArrayRef<double, 1> to, ArrayRef<double, 1> gradient,
                         ArrayRef<double, 1> from) {
        parallel(to.size(0), [&](Index i) {
          to(i) = from(i) * from(i);
          gradient(i) = 0.0;
        });
      });
  Array<double> y = device.array<double>({100}, grad);
  x.fill(3);
  clear(y, y.grad(), x);
  y.grad().fill(2);
  x.grad().fill(0);
  clear.grad(y, y.grad(), x);
  EXPECT_EQ(x.grad().to_host()[7], 12);
  EXPECT_EQ(y.grad().to_host()[7], 0);
}

// RULE: by-hand
TEST_F(Kernels, ReloadStoresOfTheSameScalarsOnly) {
  Kernel squares =
      kernel("squares", [](ArrayRef<double, 1> from, ArrayRef<double, 1> to,
                           Scalar<double> h) {
        parallel(from.size(0), [&](Index i) {
          to(i) = h * from(i);
          Expr<double> stored = to(i);
          from(i) += stored * stored;
        });
      });
  squares(x, y, 0.5);
  squares.grad(x, y, 0.5);
  expectError(ErrorCode::CannotReplay,
              {"`squares`", "argument 3", "another value", "argument 2"},
              [&] { squares.grad(x, y, 0.25); });
}

// RULE: carriers
TEST_F(Kernels, NameTheMissingGradient) {
  Array<double> plain = device.array<double>({100});
  Array<double> out = device.array<double>({100});
  expectError(ErrorCode::MissingGradient,
              {"`scale`", "no argument has a gradient"},
              [&] { scale.grad(plain, out, 1.0); });
  expectError(ErrorCode::MissingGradient,
              {"argument 2", "has no gradient", "grad)"},
              [&] { scale.grad(x, out, 1.0); });
  expectError(ErrorCode::MissingGradient,
              {"argument 2", "has no tangent", "dual)"},
              [&] { scale.jvp(x, out, 1.0); });
  scale.grad(plain, y, 1.0); // a constant input is fine
}

// RULE: initial-state
TEST_F(Kernels, LeavePrimalMemoryAloneInGradients) {
  scale(x, y, 2.0);
  uint64_t xVersion = x.version(), yVersion = y.version();
  std::vector<double> before = y.to_host();
  scale.grad(x, y, 2.0);
  EXPECT_EQ(y.to_host(), before);
  EXPECT_EQ(x.version(), xVersion);
  EXPECT_EQ(y.version(), yVersion);
  scale(x, y, 2.0);
  EXPECT_EQ(x.version(), xVersion);
  EXPECT_EQ(y.version(), yVersion + 1);
}

// RULE: by-hand
TEST_F(Kernels, RefuseAGradientThatReloadsWhatIsNoLongerThere) {
  Kernel square =
      kernel("square", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b,
                          ArrayRef<double, 0> total) {
        parallel(a.size(0), [&](Index i) { b(i) = a(i) * a(i); });
        parallel(a.size(0), [&](Index i) { total() += b(i) * b(i); });
      });
  loss.grad().fill(1);
  expectError(ErrorCode::CannotReplay,
              {"`square`", "has not run", "argument 2"},
              [&] { square.grad(x, y, loss); });
  square(x, y, loss);
  square.grad(x, y, loss);
  EXPECT_NEAR(x.grad().to_host()[0], 4 * std::pow(0.5, 3), 1e-14);
  x.fill(3);
  expectError(ErrorCode::CannotReplay, {"argument 1", "was written since"},
              [&] { square.grad(x, y, loss); });
  square(x, y, loss);
  square.grad(x, y, loss);
}

TEST_F(Kernels, ReportWhatTheyCompiled) {
  Array<int> iterations = device.array<int>({100});
  iterations.fill(5);
  loop(x, iterations, y);
  y.grad().fill(1);
  loop.grad(x, iterations, y);
  std::string report = loop.report();
  for (const char *part :
       {"`loop`", "f64 array of rank 1", "primal: compiled in", "gradient",
        "saves each time"})
    EXPECT_NE(report.find(part), std::string::npos) << report;
  EXPECT_EQ(loop.name(), "loop");
  EXPECT_EQ(loop.arguments().size(), 3u);
}

/// What has been compiled, and how often that has ended.
std::vector<std::string> compiled;
size_t ended = 0;

TEST_F(Kernels, TellThatTheyAreCompiled) {
  watch_compilation([](const std::string &kernel, bool begins) {
    if (begins)
      compiled.push_back(kernel);
    else
      ++ended;
  });
  for (int times : {1, 2}) {
    scale(x, y, 1.0 * times);
    scale.jvp(x, y, 1.0);
  }
  watch_compilation(nullptr);
  sum(x, loss);
  EXPECT_EQ(compiled.size(), 2u);
  EXPECT_EQ(compiled.front(), "scale");
  EXPECT_EQ(ended, compiled.size());
}

// RULE: out-of-tape
TEST_F(Kernels, RunOutOfTapeWithoutChangingAGradient) {
  // Small gradients are copied before the launch, for large ones it measures.
  for (int n : {50, 200000}) {
    Device small =
        Device::open("cpu", {.threads = 2, .memory_limit = 16u << 20});
    Array<double> from = small.array<double>({n}, grad);
    Array<double> to = small.array<double>({n}, grad);
    Array<int> iterations = small.array<int>({n});
    from.fill(1);
    std::vector<int> depth(n, 3);
    depth[n - 13] = 10000000;
    iterations.from_host(depth);
    from.grad().fill(7);
    to.grad().fill(1);
    expectError(ErrorCode::OutOfMemory, {"`loop`", "TestKernels.h:", "16 MiB"},
                [&] { inPlace.grad(initial_state, from, iterations, to); });
    EXPECT_EQ(from.grad().to_host(), std::vector<double>(n, 7));
    EXPECT_EQ(to.grad().to_host(), std::vector<double>(n, 1));
    depth[n - 13] = 100000; // fits, and moves the tape
    iterations.from_host(depth);
    inPlace.grad(initial_state, from, iterations, to);
    EXPECT_NE(from.grad().to_host()[0], 7);
    EXPECT_LE(small.peak_bytes(), 16u << 20);
  }
}

TEST_F(Kernels, RunFromManyHostThreads) {
  std::vector<std::thread> hosts;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t)
    hosts.emplace_back([&, t] {
      Array<double> from = device.array<double>({1000}, grad),
                    to = device.array<double>({1000}, grad);
      from.fill(t + 1);
      for (int round = 0; round < 20; ++round) {
        scale(from, to, 2.0);
        from.grad().fill(0);
        to.grad().fill(1);
        scale.grad(from, to, 2.0);
        good += to.to_host()[999] == 2.0 * (t + 1) * (t + 1) &&
                from.grad().to_host()[999] == 4.0 * (t + 1);
      }
    });
  for (std::thread &host : hosts)
    host.join();
  EXPECT_EQ(good, 80);
}

using Values = std::vector<costate::detail::ArgumentValue>;
using costate::detail::BoundArguments;
using costate::detail::Mode;

TEST_F(Kernels, LaunchAgainWithOtherScalars) {
  BoundArguments bound(scale, Values{x, y, 3.0});
  for (double factor : {3.0, 5.0}) {
    bound.launch(Mode::Primal, Values{factor});
    EXPECT_DOUBLE_EQ(y.to_host()[10], factor * 0.6 * 0.6);
    x.grad().fill(0);
    y.grad().fill(1);
    bound.launch(initial_state, Mode::Gradient, Values{factor});
    EXPECT_DOUBLE_EQ(x.grad().to_host()[10], 2 * factor * 0.6);
  }
}

TEST_F(Kernels, LaunchAgainFromOtherContents) {
  auto square = [](ArrayRef<double, 1> a, Scalar<double> factor) {
    parallel(a.size(0), [&](Index i) { a(i) = factor * a(i) * a(i); });
  };
  BoundArguments bound(kernel("square", square), Values{x, 1.0});
  for (double factor : {2.0, 3.0}) {
    x.fill(factor);
    x.grad().fill(1);
    bound.launch(initial_state, Mode::Gradient, Values{factor});
    EXPECT_DOUBLE_EQ(x.grad().to_host()[10], 2 * factor * factor);
    EXPECT_EQ(x.to_host()[10], factor);
  }
}

TEST_F(Kernels, LaunchAgainOverOtherMemory) {
  struct Memory {
    double x[2], y[2], slopes[2], adjoint[2];
  };
  auto adopted = [&](double *values, double *slopes) {
    return device.adopt(DType::F64, {2}, {values, {}, true, true}, grad,
                        {slopes, {}, true, true});
  };
  Kernel cube =
      kernel("cube", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(), [&](Index i) { b(i) = a(i) * a(i) * a(i); });
      });
  Memory first{{1, 2}, {}, {}, {1, 1}}, second{{3, 4}, {}, {}, {1, 10}};
  BoundArguments bound(cube, Values{adopted(first.x, first.slopes),
                                    adopted(first.y, first.adjoint)});
  for (Memory *memory : {&first, &second, &first}) {
    void *values[]{memory->x, memory->y};
    void *slopes[]{memory->slopes, memory->adjoint};
    bound.move(values, slopes);
    bound.launch(Mode::Primal, Values{});
    bound.launch(Mode::Gradient, Values{});
  }
  EXPECT_TRUE(bound.gradientNeeds(0));
  EXPECT_FALSE(bound.gradientNeeds(1));
  EXPECT_THAT(second.y, ElementsAre(27, 64));
  EXPECT_THAT(second.slopes, ElementsAre(27, 480));
  EXPECT_THAT(first.slopes, ElementsAre(3, 12));
}

TEST_F(Kernels, RefuseMemoryInCommonAfterAMove) {
  double memory[4]{1, 2, 3, 4}, apart[2]{};
  auto adopted = [&](double *values) {
    return device.adopt(DType::F64, {2}, {values, {}, true, true});
  };
  Kernel copy =
      kernel("copy", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(), [&](Index i) { b(i) = a(i); });
      });
  BoundArguments bound(copy, Values{adopted(memory), adopted(apart)});
  bound.launch(Mode::Primal, Values{});
  void *values[]{memory, memory + 1}, *none[]{nullptr, nullptr};
  bound.move(values, none);
  expectError(ErrorCode::BadArgument, {"memory in common"},
              [&] { bound.launch(Mode::Primal, Values{}); });
}

TEST_F(Kernels, LookAtMemoryInEachGradientOfBoundArguments) {
  auto twice = [](ArrayRef<double, 1> from, ArrayRef<double, 1> to,
                  Scalar<double> factor) {
    parallel(from.size(0), [&](Index i) { to(i) = factor * from(i); });
    parallel(to.size(0), [&](Index i) { to(i) = to(i) * to(i) * to(i); });
  };
  BoundArguments bound(kernel("twice", twice), Values{x, y, 1.0});
  auto gradient = [&](double factor) {
    x.grad().fill(0);
    y.grad().fill(1);
    bound.launch(Mode::Gradient, Values{factor});
    return x.grad().to_host()[10];
  };
  for (int round = 0; round < 2; ++round) {
    bound.launch(Mode::Primal, Values{2.0});
    y.fill(1);
    expectError(ErrorCode::CannotReplay, {}, [&] { gradient(2); });
    x.grad().fill(0);
    y.grad().fill(1);
    bound.launch(initial_state, Mode::Gradient, Values{2.0});
    EXPECT_NEAR(x.grad().to_host()[10], 24 * 0.6 * 0.6, 1e-12);
  }
}

TEST_F(Kernels, RefuseBoundArgumentsWithMemoryInCommonEachTime) {
  BoundArguments bound(scale, Values{x, x, 3.0});
  for (int round = 0; round < 2; ++round)
    expectError(ErrorCode::BadArgument, {"the same array"},
                [&] { bound.launch(Mode::Primal, Values{3.0}); });
}

TEST_F(Kernels, RecordAndCaptureBoundArguments) {
  BoundArguments bound(scale, Values{x, y, 3.0});
  for (double factor : {3.0, 5.0}) {
    bound.launch(Mode::Primal, Values{1.0});
    Tape tape;
    {
      auto recording = tape.record();
      bound.launch(Mode::Primal, Values{factor});
      sum(y, loss);
    }
    x.grad().fill(0);
    loss.grad().fill(1);
    tape.backward();
    EXPECT_DOUBLE_EQ(x.grad().to_host()[10], 2 * factor * 0.6);
    Graph graph =
        device.capture([&] { bound.launch(Mode::Primal, Values{factor + 1}); });
    graph.replay();
    EXPECT_DOUBLE_EQ(y.to_host()[10], (factor + 1) * 0.6 * 0.6);
  }
}

TEST_F(Kernels, RefuseOtherScalarsAsArguments) {
  expectError(ErrorCode::BadArgument, {"takes 3 arguments"},
              [&] { BoundArguments(scale, Values{x, y}); });
  BoundArguments bound(scale, Values{x, y, 3.0});
  for (const Values &scalars : {Values{}, Values{1.0, 2.0}})
    expectError(ErrorCode::BadArgument, {"takes 1 scalars"},
                [&] { bound.launch(Mode::Primal, scalars); });
  expectError(ErrorCode::BadArgument, {"argument 3", "given an array"},
              [&] { bound.launch(Mode::Primal, Values{x}); });
  bound.launch(Mode::Primal, Values{3.0}); // nothing is left of those
}

TEST_F(Kernels, ShareBoundArgumentsAmongHostThreads) {
  Kernel count = kernel("count", [](ArrayRef<int, 1> counts, Scalar<int> of) {
    parallel(1, [&](Index) { counts(of) = counts(of) + 1; });
  });
  Array<int> counts = device.array<int>({4});
  BoundArguments bound(count, Values{counts, 0});
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host)
    hosts.emplace_back([&, host] {
      for (int round = 0; round < 50; ++round)
        bound.launch(Mode::Primal, Values{host});
    });
  for (std::thread &host : hosts)
    host.join();
  EXPECT_EQ(counts.to_host(), std::vector<int>(4, 50));
}

TEST_F(Kernels, RefuseAChoiceOfCallsThatDoesNotExist) {
  std::string text = scale.ir();
  costate::test::Setting wrong("COSTATE_CALLS", "some");
  expectError(ErrorCode::BadArgument, {"COSTATE_CALLS", "`some`", "`all`"},
              [&] { kernel("nothing", [](ArrayRef<double, 1>) {}); });
  expectError(ErrorCode::BadArgument, {"COSTATE_CALLS"},
              [&] { Kernel::from_ir(text); });
}

TEST_F(Kernels, RefuseVectorsThatDoNotExist) {
  costate::test::Setting wrong("COSTATE_VECTORS", "avx3");
  expectError(
      ErrorCode::BadArgument, {"COSTATE_VECTORS", "`avx3`", "`avx2`"},
      [&] { kernel("one", [](ArrayRef<double, 1> x) { x(0) = 1.0; }); });
}

TEST_F(Kernels, RefuseAWayToMakeCodeThatDoesNotExist) {
  costate::test::Setting wrong("COSTATE_CODE", "slow");
  expectError(
      ErrorCode::BadArgument, {"COSTATE_CODE", "`slow`", "`quick`"},
      [&] { kernel("one", [](ArrayRef<double, 1> x) { x(0) = 1.0; }); });
}

TEST_F(Kernels, RefuseArraysOfOtherExtentsThanAreKnown) {
  Kernel points = Kernel::from_ir(R"(
    costate.kernel @points(%x: !costate.array<f64, 2> {costate.extents = array<i64: -1, 3>}) {
      %c0 = arith.constant 0 : i64
      %one = arith.constant 1.0 : f64
      costate.store %one, %x[%c0, %c0] : !costate.array<f64, 2>
    })");
  Array<double> fits = device.array<double>({4, 3});
  points(fits);
  EXPECT_EQ(fits.to_host().front(), 1);
  expectError(ErrorCode::BadArgument,
              {"argument 1", "(4, 2)",
               "f64 array of rank 2 whose extents are (any, 3)"},
              [&] { points(device.array<double>({4, 2})); });
}

TEST_F(Kernels, PrintTheirCode) {
  Kernel square =
      kernel("square", [](ArrayRef<double, 1> a, ArrayRef<double, 1> b) {
        parallel(a.size(0), [&](Index i) { b(i) = a(i) * a(i); });
      });
  Kernel again = Kernel::from_ir(square.ir());
  x.fill(3);
  again(x, y);
  EXPECT_EQ(y.to_host().front(), 9);
  EXPECT_NE(square.ir(detail::Mode::Gradient).find("costate.adjoint_of"),
            std::string::npos);
  EXPECT_NE(square.ir(detail::Mode::Tangent, true).find("define"),
            std::string::npos);
}
