/// atomic_min and atomic_max: values, and where the gradient goes.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <limits>
#include <numeric>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using S = ArrayRef<double, 0>;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The extremes of all elements.
Kernel extremes(KernelOptions options = {}) {
  return kernel(
      "extremes",
      [](X x, X most) {
        parallel(x.size(), [&](Index i) {
          atomic_min(most(0), x(i));
          atomic_max(most(1), x(i) * x(i));
        });
      },
      options);
}

TEST(Extremum, ValuesOfEveryType) {
  Kernel k = kernel("types", [](ArrayRef<int, 1> a, ArrayRef<uint32_t, 1> b,
                                ArrayRef<int64_t, 1> c, ArrayRef<uint64_t, 1> d,
                                ArrayRef<float, 1> e, ArrayRef<double, 1> f) {
    parallel(1000, [&](Index i) {
      Expr<int> n = cast<int>(i) * 37 % 1000 - 500;
      atomic_min(a(0), n);
      atomic_max(a(1), n);
      atomic_min(b(0), cast<uint32_t>(n));
      atomic_max(b(1), cast<uint32_t>(n));
      atomic_min(c(0), cast<int64_t>(n) * 10000000000);
      atomic_max(c(1), n);
      atomic_min(d(0), cast<uint64_t>(n + 500));
      atomic_max(d(1), cast<uint64_t>(cast<int64_t>(n)));
      atomic_min(e(0), cast<float>(n));
      atomic_max(e(1), 0.5f * cast<float>(n));
      atomic_min(f(0), cast<double>(n));
      atomic_max(f(1), 0.5 * cast<double>(n));
      atomic_add(f(2), 1.0);
    });
  });
  auto a = constant<int>({7, 7});
  auto b = constant<uint32_t>({~0u, 0});
  auto c = constant<int64_t>({7, 7});
  auto d = constant<uint64_t>({7, 7});
  auto e = constant<float>({7, 7});
  auto f = constant<double>({inf, -inf, 1});
  k(a, b, c, d, e, f);
  EXPECT_EQ(a.to_host(), (std::vector<int>{-500, 499}));
  EXPECT_EQ(b.to_host(), (std::vector<uint32_t>{0, ~0u}));
  EXPECT_EQ(c.to_host(), (std::vector<int64_t>{-5000000000000, 499}));
  EXPECT_EQ(d.to_host(), (std::vector<uint64_t>{0, ~uint64_t(0)}));
  EXPECT_EQ(e.to_host(), (std::vector<float>{-500, 249.5f}));
  EXPECT_EQ(f.to_host(), (Values{-500, 249.5, 1001}));
}

/// The total order makes results independent of that of the updates: NaN is
/// ignored, and -0 is less than 0.
TEST(Extremum, NaNAndSignedZeros) {
  Kernel k = extremes();
  Kernel plain = kernel("plain", [](X x, X most) {
    parallel(x.size(), [&](Index i) {
      atomic_min(most(0), x(i));
      atomic_max(most(1), x(i));
    });
  });
  auto run = [&](Values values, Values start) {
    auto x = constant(values), most = constant(start);
    plain(x, most);
    return most.to_host();
  };
  EXPECT_EQ(run({nan, 2, nan, -3}, {nan, nan}), (Values{-3, 2}));
  EXPECT_TRUE(std::isnan(run({nan, nan}, {nan, 1})[0]));
  EXPECT_EQ(run({nan}, {5, 6}), (Values{5, 6}));
  for (Values values : {Values{0.0, -0.0}, Values{-0.0, 0.0}}) {
    Values most = run(values, {values[0], values[1]});
    EXPECT_TRUE(std::signbit(most[0]));
    EXPECT_FALSE(std::signbit(most[1]));
  }
}

Values gradientOf(const Kernel &k, const Array<double> &x,
                  const Array<double> &most, Values adjoint) {
  k(x, most);
  x.grad().fill(0);
  most.grad().from_host(adjoint);
  k.grad(x, most);
  return x.grad().to_host();
}

TEST(Extremum, TheGradientGoesToTheWinner) {
  for (KernelOptions options :
       {KernelOptions{}, KernelOptions{.debug = true}}) {
    Kernel k = extremes(options);
    auto x = active<double>({1, -3, 2.5, 0.5}), most = active<double>({inf, 0});
    EXPECT_EQ(gradientOf(k, x, most, {10, 1}), (Values{0, 10 - 6, 0, 0}));
    EXPECT_EQ(most.to_host(), (Values{-3, 9}));
    EXPECT_EQ(most.grad().to_host(), (Values{0, 0}));
  }
}

/// What the array held before wins: its adjoint stays, for who wrote it.
TEST(Extremum, TheInitialContentMayWin) {
  auto x = active<double>({1, -3, 2.5, 0.5}), most = active<double>({-7, 2});
  EXPECT_EQ(gradientOf(extremes(), x, most, {10, 1}), (Values{0, -6, 0, 0}));
  EXPECT_EQ(most.grad().to_host(), (Values{10, 0}));
}

/// One of the equal ones gets all of it, whichever it is.
TEST(Extremum, TiesAreNotCountedTwice) {
  for (int threads : {1, 2}) {
    Device device = openDevice({.threads = threads});
    auto x = device.array<double>({5000}, grad),
         most = device.array<double>({2}, grad);
    x.fill(2);
    most.from_host({3, 4});
    Values g = gradientOf(extremes(), x, most, {10, 1});
    std::sort(g.rbegin(), g.rend());
    bool one = g[0] == 10 && g[1] == 0; // the initial 4 has tied with x * x
    EXPECT_TRUE(one || (g[0] == 10 && g[1] == 4) || (g[0] == 14 && g[1] == 0));
    EXPECT_EQ(std::accumulate(g.begin(), g.end(), 0.0) - 10,
              4 * (1 - most.grad().to_host()[1]));
  }
}

/// Many elements, several threads, against the same by hand.
TEST(Extremum, SegmentsAgreeWithAClosedForm) {
  const int64_t count = 20000, groups = 37;
  Values values = randomValues(count, -1, 1, 3);
  std::vector<int> group(count);
  for (int64_t i = 0; i < count; ++i)
    group[i] = static_cast<int>((i * i + 11) % groups);
  Kernel k = kernel("segments", [](ArrayRef<int, 1> group, X x, X most) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (t, 0, group(i) % 3) {
        v = v * sin(v) + x(i);
      }
      atomic_max(most(group(i)), v);
    });
  });
  Values want(count, 0.0), best(groups, -inf), slope(groups, 0.0);
  std::vector<int64_t> winner(groups, -1);
  for (int64_t i = 0; i < count; ++i) {
    double v = values[i], dv = 1;
    for (int t = 0; t < group[i] % 3; ++t) {
      dv = dv * (std::sin(v) + v * std::cos(v)) + 1;
      v = v * std::sin(v) + values[i];
    }
    if (v > best[group[i]]) {
      best[group[i]] = v;
      winner[group[i]] = i;
      slope[group[i]] = dv;
    }
  }
  for (int g = 0; g < groups; ++g)
    if (winner[g] >= 0)
      want[winner[g]] = slope[g] * (g + 1);
  for (int threads : {1, 2}) {
    Device device = openDevice({.threads = threads});
    auto at = device.array<int>({count});
    auto x = device.array<double>({count}, grad),
         most = device.array<double>({groups}, grad);
    at.from_host(group);
    x.from_host(values);
    most.fill(-inf);
    k(at, x, most);
    Values seeds(groups);
    std::iota(seeds.begin(), seeds.end(), 1.0);
    most.grad().from_host(seeds);
    k.grad(at, x, most);
    Values got = x.grad().to_host();
    for (int64_t i = 0; i < count; ++i)
      ASSERT_NEAR(got[i], want[i], 1e-12 * std::max(1.0, std::abs(want[i])))
          << i;
  }
}

/// The maximum is used by a later range; the log of a sum of exponentials does
/// not depend on it.
TEST(Extremum, UsedByALaterRange) {
  Kernel k = kernel("logsumexp", [](X x, S most, S sum, S y) {
    most() = -1e300;
    sum() = 0;
    parallel(x.size(), [&](Index i) { atomic_max(most(), x(i)); });
    parallel(x.size(), [&](Index i) { sum() += exp(x(i) - most()); });
    y() = most() + log(sum());
  });
  Values values{1, 700, 699.5, -4};
  auto x = active(values);
  auto scalar = [] { return cpu().array<double>({}, grad | dual); };
  auto most = scalar(), sum = scalar(), y = scalar();
  k(x, most, sum, y);
  y.grad().fill(1);
  k.grad(x, most, sum, y);
  double total = std::exp(0) + std::exp(-0.5) + std::exp(-704) + std::exp(-699);
  Values got = x.grad().to_host();
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(got[i], std::exp(values[i] - 700) / total, 1e-15);
  EXPECT_EQ(most.grad().to_host()[0], 0);
}

/// A constant that wins takes the gradient out.
TEST(Extremum, ConstantsTakeItToo) {
  Kernel bounded = kernel("bounded", [](X x, S most, Scalar<double> least) {
    parallel(x.size(), [&](Index i) {
      IF (i == 1) {
        atomic_max(most(), least);
      }
      ELSE { atomic_max(most(), x(i)); }
    });
  });
  for (double least : {5.0, -5.0}) {
    auto x = active<double>({1, 100, 3});
    auto most = cpu().array<double>({}, grad | dual);
    most.fill(-inf);
    bounded(x, most, least);
    most.grad().fill(2);
    bounded.grad(x, most, least);
    EXPECT_EQ(x.grad().to_host(), (Values{0, 0, least > 0 ? 0.0 : 2.0}));
    EXPECT_EQ(most.grad().to_host()[0], 0);
  }
}

TEST(Extremum, InSerialCode) {
  Kernel k = kernel("serial", [](X x, S most) {
    FOR (i, 0, x.size()) {
      atomic_max(most(), x(i) * x(i));
    }
  });
  auto x = active<double>({1, -3, 3, 2});
  auto most = cpu().array<double>({}, grad | dual);
  most.fill(0);
  k(x, most);
  most.grad().fill(1);
  k.grad(x, most);
  EXPECT_EQ(x.grad().to_host(), (Values{0, 0, 6, 0})); // the last of equal ones
  most.fill(0);
  x.dual().from_host({1, 10, 100, 1000});
  k.jvp(x, most);
  EXPECT_EQ(most.to_host()[0], 9);
  EXPECT_EQ(most.dual().to_host()[0], 600);
  most.fill(20);
  most.dual().fill(7);
  k.jvp(x, most);
  EXPECT_EQ(most.dual().to_host()[0], 7);
}

/// Each work item has an element of its own.
TEST(Extremum, OfOwnElements) {
  Kernel k = kernel("rows", [](ArrayRef<double, 2> x, X least) {
    parallel(x.size(0), [&](Index i) {
      FOR (j, 0, x.size(1)) {
        atomic_min(least(i), x(i, j) * x(i, j));
      }
    });
  });
  auto x = active<double>({3, -2, 4, 1, 5, 6}, {2, 3}),
       least = active<double>({9, 0.5});
  GradientCase c({x}, {least});
  c.reset();
  k(x, least);
  EXPECT_EQ(least.to_host(), (Values{4, 0.5}));
  least.grad().from_host({1, 1});
  x.grad().fill(0);
  k.grad(x, least);
  EXPECT_EQ(x.grad().to_host(), (Values{0, -4, 0, 0, 0, 0}));
  EXPECT_EQ(least.grad().to_host(), (Values{0, 1}));
  auto y = active<double>({inf, inf});
  expectGradients({x}, {y},
                  kernel("all",
                         [](ArrayRef<double, 2> x, X y) {
                           parallel(x.size(0),
                                    [&](Index i) { y(i) = 0.0 * x(i, 0); });
                           parallel(x.size(0), [&](Index i) {
                             FOR (j, 0, x.size(1)) {
                               atomic_max(y(i), x(i, j) * x(i, j));
                             }
                           });
                         }),
                  x, y);
}

TEST(Extremum, InSinglePrecision) {
  Kernel k =
      kernel("single", [](ArrayRef<float, 1> x, ArrayRef<float, 1> least) {
        parallel(x.size(), [&](Index i) { atomic_min(least(0), sin(x(i))); });
      });
  auto x = active<float>({1, 4, 5, 2}), least = active<float>({9});
  k(x, least);
  least.grad().fill(1);
  k.grad(x, least);
  std::vector<float> got = x.grad().to_host();
  EXPECT_FLOAT_EQ(got[2], std::cos(5.0f));
  EXPECT_EQ(got[0] + got[1] + got[3], 0);
}

/// The range that follows changes the element: a version of it is kept.
TEST(Extremum, OverwrittenLater) {
  Kernel k = kernel("again", [](X x, S most, X y) {
    parallel(x.size(), [&](Index i) { atomic_max(most(), x(i)); });
    parallel(x.size(), [&](Index i) { y(i) = most() * x(i); });
    parallel(x.size(), [&](Index i) { atomic_max(most(), x(i) * x(i)); });
  });
  auto x = active<double>({1, 3, -4}), y = active<double>({0, 0, 0});
  auto most = cpu().array<double>({}, grad | dual);
  // y = 3 x, and 3 is x(1); at last most = 16 = x(2)^2
  Values want{3, 30 + 1 + 30 - 400, 300 - 8000};
  auto seed = [&] {
    x.grad().fill(0);
    y.grad().from_host({1, 10, 100});
    most.grad().fill(1000);
    most.fill(0);
  };
  seed();
  k.grad(initial_state, x, most, y);
  EXPECT_EQ(x.grad().to_host(), want);
  seed();
  Tape tape;
  {
    auto recording = tape.record();
    k(x, most, y);
  }
  tape.backward();
  EXPECT_EQ(x.grad().to_host(), want);
  k(x, most, y);
  expectError(ErrorCode::CannotReplay, {"overwritten before the kernel ends"},
              [&] { k.grad(x, most, y); });
}

/// Several launches that go on with one maximum: the Tape keeps what each has
/// left.
TEST(Extremum, OverSeveralLaunches) {
  Kernel k = kernel("most", [](X x, S most) {
    parallel(x.size(), [&](Index i) { atomic_max(most(), x(i) * x(i)); });
  });
  Kernel add = kernel("add", [](S most, S sum) { sum() += most(); });
  auto x = active<double>({2, 1}), z = active<double>({3, -5});
  auto most = cpu().array<double>({}, grad | dual),
       sum = cpu().array<double>({}, grad | dual);
  most.fill(0);
  sum.fill(0);
  Tape tape;
  {
    auto recording = tape.record();
    k(x, most);
    add(most, sum); // 4
    k(z, most);
    add(most, sum); // 25
  }
  tape.backward(sum);
  EXPECT_EQ(x.grad().to_host(), (Values{4, 0}));
  EXPECT_EQ(z.grad().to_host(), (Values{0, -10}));
}

TEST(Extremum, IntegersHaveNoGradient) {
  Kernel k = kernel("first", [](X x, ArrayRef<int, 0> first, S y) {
    parallel(x.size(), [&](Index i) {
      IF (x(i) > 1) {
        atomic_min(first(), cast<int>(i));
      }
    });
    y() = x(first()) * 2.0;
  });
  auto x = active<double>({0, 1, 5, 3}), y0 = active<double>({0});
  auto y = cpu().array<double>({}, grad | dual);
  auto first = cpu().array<int>({});
  first.fill(1000);
  k(x, first, y);
  EXPECT_EQ(y.to_host()[0], 10);
  y.grad().fill(1);
  k.grad(x, first, y);
  EXPECT_EQ(x.grad().to_host(), (Values{0, 0, 2, 0}));
}

/// The gradient of a gradient's direction: linear in the adjoint of the winner.
TEST(Extremum, SecondOrder) {
  Kernel k = kernel("cubes", [](X x, X most) {
    parallel(x.size(),
             [&](Index i) { atomic_max(most(0), x(i) * x(i) * x(i)); });
  });
  auto x = active<double>({1, 3, 2}), most = active<double>({0});
  k(x, most);
  auto gradient = Kernel::from_ir(k.ir(detail::Mode::Gradient));
  auto gx = active<double>({0, 0, 0}), gm = active<double>({1});
  x.dual().fill(1);
  gm.dual().fill(100);
  gradient.jvp(x, most, gx, gm);
  EXPECT_EQ(gx.to_host(), (Values{0, 27, 0}));
  EXPECT_EQ(gx.dual().to_host(), (Values{0, 18 + 2700, 0}));
  EXPECT_EQ(gm.dual().to_host(), (Values{0}));
}

TEST(Extremum, DeterministicValues) {
  Kernel k = extremes({.deterministic = true});
  Values values = randomValues(10000, -1, 1, 9);
  values[77] = values[4711] = -1.5;
  for (int threads : {1, 2}) {
    Device device = openDevice({.threads = threads});
    auto x = device.array<double>({10000}), most = device.array<double>({2});
    x.from_host(values);
    most.from_host({inf, -inf});
    k(x, most);
    EXPECT_EQ(most.to_host(), (Values{-1.5, 2.25}));
  }
}

//===-- Refusals ----------------------------------------------------------===//

int here = 0; ///< the line of the update

/// Expects that the update in line `here` and the use in the next line, or the
/// line before, are named.
template <class F> void expectRefusal(int offset, F body) {
  Kernel k = kernel("refused", body);
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  k(x, y);
  expectError(ErrorCode::CannotReplay,
              {"may take a minimum or maximum in the same part", "`Var`",
               test::here(__FILE__, here), test::here(__FILE__, here + offset)},
              [&] { k.grad(x, y); });
}

// clang-format off
TEST(Extremum, OtherUsesInOnePartAreRefused) {
  expectRefusal(-1, [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      y(2 - i) = 0; here = __LINE__ + 1;
      atomic_max(y(i), x(i));
    });
  });
  expectRefusal(1, [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      atomic_max(y(0), x(i)); here = __LINE__;
      y(i) += x(i);
    });
  });
  expectRefusal(1, [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      atomic_max(y(0), x(i)); here = __LINE__;
      atomic_min(y(i), x(i));
    });
  });
}
// clang-format on

TEST(Extremum, AReadInTheSameRangeIsRefused) {
  Kernel k = kernel("read", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      atomic_max(y(0), x(i));
      x(i) = y(0);
    });
  });
  auto x = active<double>({1, 2}), y = active<double>({0});
  expectError(ErrorCode::CannotReplay, {"may or may not see minima or maxima"},
              [&] { k.grad(x, y); });
}

/// Their order matters where they meet.
TEST(Extremum, OtherUpdatesOfOneElementAreRaces) {
  if (!isOnCpu())
    GTEST_SKIP() << "races are looked for on the CPU";
  Kernel k = kernel("mixed",
                    [](X x, ArrayRef<int, 1> at, X y) {
                      parallel(x.size(), [&](Index i) {
                        IF (i == 0) {
                          y(at(i)) += x(i);
                        }
                        ELSE { atomic_max(y(at(i)), x(i)); }
                      });
                    },
                    {.debug = true});
  auto x = constant<double>({1, 2, 3}), y = constant<double>({0, 0});
  auto apart = constant<int>({0, 1, 1}), together = constant<int>({1, 0, 1});
  k(x, apart, y);
  EXPECT_EQ(y.to_host(), (Values{1, 3}));
  expectError(ErrorCode::Race,
              {"element 1 of argument 3", "the minimum or maximum of", "add"},
              [&] { k(x, together, y); });
}

TEST(Extremum, SharedElementsHaveNoTangent) {
  auto x = active<double>({1, 2}), most = active<double>({0, 0});
  expectError(ErrorCode::NotDifferentiable,
              {"no forward derivative", "in serial code"},
              [&] { extremes().jvp(x, most); });
}

TEST(Extremum, InexactAndDeterministicGradientsAreRefused) {
  auto x = active<double>({1, 2}), most = active<double>({0, 0});
  expectError(ErrorCode::NotDifferentiable, {"`fast_math`", "other bits"},
              [&] { extremes({.fast_math = true}).grad(x, most); });
  expectError(ErrorCode::CannotReplay, {"deterministic", "left to chance"},
              [&] { extremes({.deterministic = true}).grad(x, most); });
}

/// As for a kernel that reloads what it stored.
TEST(Extremum, TheKernelMustHaveRun) {
  Kernel k = extremes();
  auto x = active<double>({1, 2}), most = active<double>({0, 0});
  expectError(ErrorCode::CannotReplay, {"has not run"},
              [&] { k.grad(x, most); });
  k(x, most);
  most.fill(1);
  expectError(ErrorCode::CannotReplay, {"was written since"},
              [&] { k.grad(x, most); });
}

} // namespace
