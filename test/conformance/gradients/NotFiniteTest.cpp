/// Kernels with `find_nan` stop at the operation that gives inf or NaN, and at
/// no other.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <limits>

COSTATE_LABEL("*", waits);
COSTATE_LABEL("NotFinite.ManyChecksInALoop", slow);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

const KernelOptions finding{.find_nan = true};

/// Where the operation is: set in front of it.
int line = 0;

/// y = f(x), element by element.
template <class F> Kernel mapped(F &&f, KernelOptions options = finding) {
  return kernel(
      "mapped",
      [&](X x, X y) {
        parallel(x.size(), [&](Index i) { y(i) = f(Expr<double>(x(i))); });
      },
      options);
}

void expectPrimal(std::initializer_list<std::string> parts, const Kernel &k,
                  std::vector<double> values) {
  auto x = active(values), y = active(std::vector<double>(values.size(), 0));
  expectError(ErrorCode::NotFinite, parts, [&] { k(x, y); });
  expectError(ErrorCode::NotFinite, parts, [&] { k.jvp(x, y); });
}

/// The gradient with these seeds of y.
void gradient(const Kernel &k, std::vector<double> values,
              std::vector<double> seeds) {
  auto x = active(values), y = active(std::vector<double>(values.size(), 0));
  y.grad().from_host(seeds);
  k.grad(x, y);
}

void tangent(const Kernel &k, std::vector<double> values,
             std::vector<double> seeds) {
  auto x = active(values), y = active(std::vector<double>(values.size(), 0));
  x.dual().from_host(seeds);
  k.jvp(x, y);
}

using E = Expr<double>;

/// More checks than passes over loops can deal with.
TEST(NotFinite, ManyChecksInALoop) {
  auto make = [](bool finds) {
    return kernel("many",
                  [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
                    parallel(x.size(), [&](Index i) {
                      Var<double> v = x(i);
                      FOR (t, 0, 3) {
                        for (int k = 0; k < 60; ++k)
                          v = sin(v) + 1.0 / (v * v - 0.25 * k);
                        y(i) += v;
                      }
                    });
                  },
                  {.find_nan = finds});
  };
  auto run = [&](const Kernel &k) {
    auto x = active<double>({0.7, 1.3}), y = active<double>({1, 2});
    k(x, y);
    y.grad().fill(1);
    k.grad(x, y);
    std::vector<double> found = y.to_host();
    for (double slope : x.grad().to_host())
      found.push_back(slope);
    return found;
  };
  Kernel finds = make(true);
  if (!assembles([&] { EXPECT_EQ(run(finds), run(make(false))); }))
    GTEST_SKIP() << "the driver does not assemble so large a kernel";
  auto x = active<double>({0.7, 0.0}), y = active<double>({0, 0});
  expectError(ErrorCode::NotFinite,
              {"NotFiniteTest.cpp:", "gives inf", "in work item 1"}, [&] {
                finds(x, y);
                cpu().synchronize();
              });
}

} // namespace

TEST(NotFinite, NamesTheFirstOperation) {
  Kernel first = mapped([](E x) {
    line = __LINE__ + 1;
    return sin(log(x)) * x + 1.0;
  });
  expectPrimal({"`mapped`", here(__FILE__, line), "log(-1) gives nan",
                "in work item 2", "branch"},
               first, {1, 2, -1});
  expectPrimal({"0 / 0 gives nan", "in work item 1"},
               mapped([](E x) { return x / x; }), {1, 0});
  expectPrimal({"log(0) gives -inf"}, mapped([](E x) { return log(x); }), {0});
  expectPrimal({"exp(1000) gives inf"},
               mapped([](E x) { return 1.0 / exp(x); }), {1000});
  expectPrimal({"1e+200 * 1e+200 gives inf"}, mapped([](E x) { return x * x; }),
               {1e200});
  expectPrimal({"1e+308 + 1e+308 gives inf"}, mapped([](E x) { return x + x; }),
               {1e308});
  expectPrimal({"-1e+308 - 1e+308 gives -inf"},
               mapped([](E x) { return -x - x; }), {1e308});
  expectPrimal({"pow(-2, 0.5) gives nan"},
               mapped([](E x) { return pow(x, 0.5); }), {-2});
  expectPrimal({"fmod(1, 0) gives nan"},
               mapped([](E x) { return fmod(1.0, x); }), {0});
  expectPrimal({"cast<float>(1e+50) gives inf"},
               mapped([](E x) { return cast<double>(cast<float>(x)); }),
               {1e50});
  expectPrimal({"2 / 0 gives inf"}, mapped([](E x) { return 2.0 / x; }), {0});
  expectPrimal({"atanh(1) gives inf"}, mapped([](E x) { return atanh(x); }),
               {1});
}

TEST(NotFinite, TracesItThroughOperationsThatOnlyPassItOn) {
  Kernel k = kernel(
      "chain",
      [](X x, X y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          line = __LINE__ + 2;
          FOR (k, 0, 10) {
            v = sqrt(v - 1.0);
          }
          y(i) = v * 2.0;
        });
      },
      finding);
  auto x = active<double>({9}), y = active<double>({0});
  expectError(ErrorCode::NotFinite,
              {"`chain`", here(__FILE__, line), "sqrt(-0.", "gives nan"},
              [&] { k(x, y); });
}

TEST(NotFinite, ReportsTheLowestWorkItemOnAnyNumberOfThreads) {
  Kernel k = mapped([](E x) { return log(x); });
  for (int threads : {1, 3}) {
    Device device = openDevice({.threads = threads});
    auto x = device.array<double>({100000}), y = device.array<double>({100000});
    std::vector<double> values(100000, 1);
    for (int bad : {71234, 71235, 99999, 80000})
      values[bad] = -bad;
    x.from_host(values);
    for (int repeat = 0; repeat < 5; ++repeat)
      expectError(ErrorCode::NotFinite, {"log(-71234) ", "in work item 71234;"},
                  [&] { k(x, y); });
  }
}

TEST(NotFinite, NamesAllIndicesOfAWorkItem) {
  Kernel k = kernel(
      "plane",
      [](ArrayRef<double, 2> x) {
        parallel({x.size(0), x.size(1)},
                 [&](Index i, Index j) { x(i, j) = 1.0 / x(i, j); });
      },
      finding);
  auto x = cpu().array<double>({2, 3});
  x.from_host({1, 1, 1, 1, 0, 1});
  expectError(ErrorCode::NotFinite, {"1 / 0 gives inf, in work item (1, 1);"},
              [&] { k(x); });
}

TEST(NotFinite, FindsItInSerialCodeAndWhileLoops) {
  Kernel k = kernel(
      "serial",
      [](X x) {
        Var<double> v = x(0);
        WHILE (v > 0.5) {
          line = __LINE__ + 1;
          v = v / (v - 1.0);
          v -= 1.5;
        }
        x(0) = v;
      },
      finding);
  auto x = active<double>({1});
  expectError(ErrorCode::NotFinite,
              {"`serial`", here(__FILE__, line), "1 / 0 gives inf;"},
              [&] { k(x); });
  x.from_host({0.25});
  EXPECT_NO_THROW(k(x));
}

TEST(NotFinite, SaysWhatAnArrayHolds) {
  Kernel k = kernel(
      "gather",
      [](ArrayRef<int, 1> at, ArrayRef<double, 2> x, X y) {
        parallel(at.size(), [&](Index i) {
          line = __LINE__ + 1;
          y(i) = x(at(i), 1);
        });
      },
      finding);
  auto x = active<double>({1, 2, 3, 4, 5, notANumber}, {3, 2});
  auto y = active<double>({0, 0, 0});
  auto at = constant<int>({0, 1, 2});
  std::initializer_list<std::string> parts = {
      "`gather`", here(__FILE__, line),
      "element (2, 1) of argument 2 holds nan, in work item 2;"};
  expectError(ErrorCode::NotFinite, parts, [&] { k(at, x, y); });
  expectError(ErrorCode::NotFinite, parts, [&] { k.jvp(at, x, y); });
  y.grad().from_host({0, -inf, 1});
  expectError(ErrorCode::NotFinite,
              {here(__FILE__, line),
               "in the reverse sweep of the gradient, "
               "element 1 of the gradient of argument 3 holds -inf"},
              [&] { k.grad(at, x, y); });
  x.from_host({1, 2, 3, 4, 5, 6});
  x.dual().from_host({0, 0, 0, notANumber, 0, 0});
  expectError(ErrorCode::NotFinite,
              {"element (1, 1) of the tangent of argument 2 holds nan"},
              [&] { k.jvp(at, x, y); });
}

TEST(NotFinite, SaysInWhichSweepItArises) {
  Kernel root = mapped([](E x) { return sqrt(x); });
  EXPECT_NO_THROW(gradient(root, {4, 0}, {1, 0}));
  expectError(ErrorCode::NotFinite,
              {"in the reverse sweep of the gradient, the derivative of `sqrt` "
               "computes 0.5 / 0, which gives inf, in work item 1;"},
              [&] { gradient(root, {4, 0}, {1, 2}); });
  EXPECT_NO_THROW(tangent(root, {4, 0}, {1, 0}));
  expectError(ErrorCode::NotFinite,
              {"the derivative of `sqrt` computes 0.5 / 0, which gives inf, in "
               "work item 1;"},
              [&] { tangent(root, {4, 0}, {1, 2}); });
  Kernel forward = mapped([](E x) { return sin(log(x)); });
  expectError(ErrorCode::NotFinite,
              {"in the forward sweep of the gradient, log(-1) gives nan"},
              [&] { gradient(forward, {-1}, {1}); });
}

TEST(NotFinite, FindsOverflowOfDerivatives) {
  Kernel k = mapped([](E x) { return x * 1e200; });
  expectError(ErrorCode::NotFinite,
              {"reverse sweep", "the derivative of `*` computes 1e+200 * "
                                "1e+200, which gives inf"},
              [&] { gradient(k, {1}, {1e200}); });
  expectError(ErrorCode::NotFinite,
              {"the derivative of `*`", "1e+200 * 1e+200"},
              [&] { tangent(k, {1}, {1e200}); });
}

/// What has no effect is no error: neither the value nor its derivative.
TEST(NotFinite, IgnoresWhatDoesNotCount) {
  Kernel guarded = mapped([](E x) { return select(x > 0.0, log(x), 0.0); });
  EXPECT_NO_THROW(gradient(guarded, {1, 0, -1}, {1, 1, 1}));
  EXPECT_NO_THROW(tangent(guarded, {1, 0, -1}, {1, 1, 1}));
  Kernel chain =
      mapped([](E x) { return select(x > 0.0, x * log(x) * sqrt(x), 0.0); });
  EXPECT_NO_THROW(gradient(chain, {1, 0, -1}, {1, 1, 1}));
  EXPECT_NO_THROW(tangent(chain, {1, 0, -1}, {1, 1, 1}));
  Kernel wrong = mapped([](E x) { return select(x > -1.0, 0.0, log(x)); });
  expectError(ErrorCode::NotFinite, {"log(-1) gives nan", "in work item 2"},
              [&] { tangent(wrong, {1, 0, -1}, {1, 1, 1}); });
  Kernel branch = mapped([](E x) {
    Var<double> v = 0;
    Expr<double> y = log(x);
    IF (x > 0.0) {
      v = y;
    }
    return Expr<double>(v);
  });
  EXPECT_NO_THROW(gradient(branch, {1, 0, -1}, {1, 1, 1}));
  Kernel origin = mapped([](E x) { return hypot(x, 0.0 * x) + atan2(x, x); });
  EXPECT_NO_THROW(gradient(origin, {1, 0}, {1, 1}));
  EXPECT_NO_THROW(tangent(origin, {1, 0}, {1, 1}));
}

/// The same, where the value goes through the tape.
TEST(NotFinite, IgnoresWhatDoesNotCountAfterATape) {
  Kernel k = kernel(
      "saved",
      [](X x, ArrayRef<int, 1> iterations, X y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (k, 0, iterations(i)) {
            v = select(v > 0.5, sin(sqrt(v - 0.5)), v * v);
          }
          y(i) = v;
        });
      },
      finding);
  auto x = active<double>({0.9, 0.1, 0.4}), y = active<double>({0, 0, 0});
  auto iterations = constant<int>({3, 4, 5});
  EXPECT_NO_THROW(k(x, iterations, y));
  y.grad().fill(1);
  EXPECT_NO_THROW(k.grad(x, iterations, y));
  x.dual().fill(1);
  EXPECT_NO_THROW(k.jvp(x, iterations, y));
}

TEST(NotFinite, DoesNotRunWhatWasHoisted) {
  Kernel k = kernel(
      "hoisted",
      [](X x, ArrayRef<int, 1> iterations, X y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = 1;
          Expr<double> at = x(i);
          FOR (k, 0, iterations(i)) {
            v += 1.0 / at;
          }
          y(i) = v;
        });
      },
      finding);
  auto x = active<double>({2, 0}), y = active<double>({0, 0});
  EXPECT_NO_THROW(k(x, constant<int>({3, 0}), y));
  expectError(ErrorCode::NotFinite, {"1 / 0 gives inf, in work item 1"},
              [&] { k(x, constant<int>({3, 1}), y); });
}

TEST(NotFinite, AllowsInfinitiesThatTheKernelWrites) {
  Kernel k = kernel(
      "largest",
      [](ArrayRef<double, 2> x, X y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> most = -inf;
          FOR (j, 0, x.size(1)) {
            most = max(most, x(i, j));
          }
          y(i) = most + inf;
        });
      },
      finding);
  auto x = active<double>({1, 2, 3, 4}, {2, 2}), y = active<double>({0, 0});
  EXPECT_NO_THROW(k(x, y));
}

TEST(NotFinite, FindsSumsThatOverflow) {
  for (bool deterministic : {false, true})
    for (int threads : {1, 3}) {
      Device device = openDevice({.threads = threads});
      Kernel k =
          kernel("sum",
                 [](X x, ArrayRef<int, 1> at, ArrayRef<double, 2> sums) {
                   parallel(x.size(), [&](Index i) { sums(at(i), 1) += x(i); });
                 },
                 {.deterministic = deterministic, .find_nan = true});
      auto x = device.array<double>({1000}, grad);
      auto sums = device.array<double>({3, 2}, grad);
      auto at = device.array<int>({1000});
      at.fill(2);
      x.fill(1e304);
      EXPECT_NO_THROW(k(x, at, sums));
      x.fill(1e306);
      expectError(ErrorCode::NotFinite,
                  {"`sum`", "element (2, 1) of argument 3", "inf"},
                  [&] { k(x, at, sums); });
    }
}

/// Atomics that tell what an element was, as loads do.
TEST(NotFinite, FindsWhatAtomicsReturn) {
  auto expect = [](double start, double value, const char *text, auto &&step) {
    Kernel k = kernel(
        "fetches",
        [&](X element, X old, Scalar<double> value) {
          parallel(old.size(),
                   [&](Index i) { old(i) = 2.0 * step(element(0), value); });
        },
        finding);
    auto element = constant<double>({1}), old = constant<double>({0, 0});
    EXPECT_NO_THROW(k(element, old, 2.0));
    element.from_host({start});
    expectError(ErrorCode::NotFinite,
                {"`fetches`", "element 0 of argument 1", text},
                [&] { k(element, old, value); });
  };
  auto add = [](auto e, auto value) { return atomic_add(e, value); };
  auto exchange = [](auto e, auto value) { return atomic_exchange(e, value); };
  expect(notANumber, 1, "held nan", exchange);
  expect(inf, 1, "held inf", add);
  expect(1.5e308, 1e308, "gives inf", add);
  expect(-inf, 1, "held -inf",
         [](auto e, auto value) { return atomic_max(e, value); });
  expect(notANumber, 1, "held nan", [](auto e, auto value) {
    return atomic_compare_exchange(e, value, 7.0);
  });
}

TEST(NotFinite, FindsAdjointsThatOverflow) {
  Kernel k = kernel(
      "spread",
      [](X x, X y) { parallel(y.size(), [&](Index i) { y(i) = 2.0 * x(0); }); },
      finding);
  auto x = active<double>({1}), y = active(std::vector<double>(8, 0));
  y.grad().fill(4e307);
  expectError(ErrorCode::NotFinite,
              {"in the reverse sweep of the gradient, adding 8e+307 to element "
               "0 of the gradient of argument 1 gives inf"},
              [&] { k.grad(x, y); });
}

TEST(NotFinite, WorksInSinglePrecision) {
  Kernel k = kernel(
      "single",
      [](ArrayRef<float, 1> x, ArrayRef<float, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
      },
      finding);
  auto x = active<float>({1e20f}), y = active<float>({0});
  expectError(ErrorCode::NotFinite, {"1e+20 * 1e+20 gives inf"},
              [&] { k(x, y); });
}

TEST(NotFinite, IsNotLookedForOtherwise) {
  Kernel k = mapped([](E x) { return log(x); }, {});
  EXPECT_NO_THROW(gradient(k, {-1, 0}, {1, 1}));
}
