/// sum, minimum, maximum, argmin and argmax over a range.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <algorithm>
#include <limits>
#include <numeric>

COSTATE_LABEL("*", waits);
COSTATE_LABEL("Reduction.TiesMissingValuesAndEmptyRanges", slow);
COSTATE_LABEL("Reduction.ExtremesOfEveryType", slow);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using M = ArrayRef<double, 2>;
using S = ArrayRef<double, 0>;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Reduction, Values) {
  Kernel k = kernel("values", [](X x, M m, X out, ArrayRef<int64_t, 1> at) {
    out(0) = sum(x.size(), [&](Index i) { return x(i); });
    out(1) = sum({m.size(0), m.size(1)},
                 [&](Index i, Index j) { return m(i, j) * m(i, j); });
    out(2) = minimum(elements(x), [&](Index i) { return x(i); });
    out(3) = maximum(elements(m), [&](Index i, Index j) { return m(i, j); });
    at(0) = argmin(x.size(), [&](Index i) { return x(i); });
    at(1) = argmax(x.size(), [&](Index i) { return x(i); });
    auto [i, j] =
        argmax(elements(m), [&](Index i, Index j) { return m(i, j); });
    at(2) = i;
    at(3) = j;
    at(4) = sum(x.size(), [&](Index i) { return x(i) > 1; });
  });
  for (size_t n : {1, 5, 33, 70000}) {
    Values values = randomValues(n, -2, 2, unsigned(n));
    Values matrix = randomValues(3 * n, -1, 1, 7);
    auto x = constant(values), out = constant(Values(4));
    auto m = constant(matrix, {3, int64_t(n)});
    auto at = constant(std::vector<int64_t>(5));
    k(x, m, out, at);
    double total = std::accumulate(values.begin(), values.end(), 0.0);
    double squares =
        std::inner_product(matrix.begin(), matrix.end(), matrix.begin(), 0.0);
    auto place = [](const Values &all, auto found) {
      return int64_t(found(all.begin(), all.end()) - all.begin());
    };
    auto least = [](auto b, auto e) { return std::min_element(b, e); };
    auto most = [](auto b, auto e) { return std::max_element(b, e); };
    Values got = out.to_host();
    EXPECT_NEAR(got[0], total, 1e-10);
    EXPECT_NEAR(got[1], squares, 1e-8);
    EXPECT_EQ(got[2], *least(values.begin(), values.end()));
    EXPECT_EQ(got[3], *most(matrix.begin(), matrix.end()));
    int64_t winner = place(matrix, most);
    EXPECT_EQ(at.to_host(),
              (std::vector<int64_t>{place(values, least), place(values, most),
                                    winner / int64_t(n), winner % int64_t(n),
                                    std::ranges::count_if(values, [](double v) {
                                      return v > 1;
                                    })}));
  }
}

/// The same inside of a work item, where they are loops.
TEST(Reduction, ValuesInWorkItems) {
  Kernel k = kernel("rows", [](M m, M out, ArrayRef<int64_t, 2> at) {
    parallel(m.size(0), [&](Index r) {
      auto row = [&](Index j) { return m(r, j); };
      out(r, 0) = sum(m.size(1), row);
      out(r, 1) = minimum(m.size(1), row);
      out(r, 2) = maximum(m.size(1), row);
      at(r, 0) = argmin(m.size(1), row);
      at(r, 1) = argmax(m.size(1), row);
      at(r, 2) = sum(m.size(1), [&](Index j) { return m(r, j) < 0; });
    });
  });
  constexpr int64_t rows = 5, columns = 7;
  Values values = randomValues(rows * columns, -1, 1);
  auto m = constant(values, {rows, columns});
  auto out = constant(Values(3 * rows), {rows, 3});
  auto at = constant(std::vector<int64_t>(3 * rows), {rows, 3});
  k(m, out, at);
  for (int64_t r = 0; r < rows; ++r) {
    auto begin = values.begin() + r * columns, end = begin + columns;
    EXPECT_NEAR(out.to_host()[3 * r], std::accumulate(begin, end, 0.0), 1e-14);
    EXPECT_EQ(out.to_host()[3 * r + 1], *std::min_element(begin, end));
    EXPECT_EQ(out.to_host()[3 * r + 2], *std::max_element(begin, end));
    EXPECT_EQ(at.to_host()[3 * r], std::min_element(begin, end) - begin);
    EXPECT_EQ(at.to_host()[3 * r + 1], std::max_element(begin, end) - begin);
    EXPECT_EQ(at.to_host()[3 * r + 2],
              std::count_if(begin, end, [](double v) { return v < 0; }));
  }
}

/// Both ways: a range of serial code, and a loop of a work item.
template <class T> struct Extremes {
  T least, most;
  int64_t first, last, where;
};

template <class T>
Extremes<T> extremesOf(const std::vector<T> &values, bool inWorkItem) {
  using V = ArrayRef<T, 1>;
  Kernel k = kernel("extremes", [&](V x, V out, ArrayRef<int64_t, 1> at) {
    auto all = [&] {
      auto term = [&](Index i) { return x(i); };
      out(0) = minimum(x.size(), term);
      out(1) = maximum(x.size(), term);
      at(0) = argmin(x.size(), term);
      at(1) = argmax(x.size(), term);
      auto [a, b] = argmin({x.size(), 2}, [&](Index i, Index) { return x(i); });
      at(2) = 2 * a + b;
    };
    if (inWorkItem)
      parallel(1, [&](Index) { all(); });
    else
      all();
  });
  auto x = constant(values), out = constant<T>({5, 5});
  auto at = constant<int64_t>({7, 7, 7});
  k(x, out, at);
  return {out.to_host()[0], out.to_host()[1], at.to_host()[0], at.to_host()[1],
          at.to_host()[2]};
}

TEST(Reduction, TiesMissingValuesAndEmptyRanges) {
  for (bool inWorkItem : {false, true}) {
    SCOPED_TRACE(inWorkItem);
    auto tied = extremesOf<double>({3, 1, 4, 1, 4, 2}, inWorkItem);
    EXPECT_EQ(tied.least, 1);
    EXPECT_EQ(tied.most, 4);
    EXPECT_EQ(tied.first, 1);
    EXPECT_EQ(tied.last, 2);
    EXPECT_EQ(tied.where, 2);
    auto missing = extremesOf<double>({nan, inf, -nan, -inf, nan}, inWorkItem);
    EXPECT_EQ(missing.least, -inf);
    EXPECT_EQ(missing.most, inf);
    EXPECT_EQ(missing.first, 3);
    EXPECT_EQ(missing.last, 1);
    auto infinite = extremesOf<double>({nan, inf, inf}, inWorkItem);
    EXPECT_EQ(infinite.least, inf);
    EXPECT_EQ(infinite.first, 1);
    auto zeros = extremesOf<double>({0.0, -0.0, 0.0, -0.0}, inWorkItem);
    EXPECT_EQ(zeros.first, 1);
    EXPECT_EQ(zeros.last, 0);
    for (const Values &none : {Values{}, Values{nan, nan}}) {
      auto nothing = extremesOf<double>(none, inWorkItem);
      EXPECT_EQ(nothing.least, inf);
      EXPECT_EQ(nothing.most, -inf);
      EXPECT_EQ(nothing.first, -1);
      EXPECT_EQ(nothing.last, -1);
      EXPECT_EQ(nothing.where, -3);
    }
  }
}

template <class T> void expectExtremesOfType() {
  using Limits = std::numeric_limits<T>;
  for (bool inWorkItem : {false, true}) {
    std::vector<T> values{T(3),          Limits::lowest(), Limits::max(), T(5),
                          Limits::max(), Limits::lowest(), T(0)};
    auto found = extremesOf<T>(values, inWorkItem);
    EXPECT_EQ(found.least, Limits::lowest());
    EXPECT_EQ(found.most, Limits::max());
    EXPECT_EQ(found.first, 1);
    EXPECT_EQ(found.last, 2);
    auto greatest = extremesOf<T>({Limits::max(), Limits::max()}, inWorkItem);
    EXPECT_EQ(greatest.first, 0);
    EXPECT_EQ(greatest.last, 0);
    auto least = extremesOf<T>({Limits::lowest()}, inWorkItem);
    EXPECT_EQ(least.first, 0);
    EXPECT_EQ(least.last, 0);
    if constexpr (std::is_integral_v<T>) {
      auto none = extremesOf<T>({}, inWorkItem);
      EXPECT_EQ(none.least, Limits::max());
      EXPECT_EQ(none.most, Limits::lowest());
      EXPECT_EQ(none.first, -1);
    }
  }
}

TEST(Reduction, ExtremesOfEveryType) {
  expectExtremesOfType<int8_t>();
  expectExtremesOfType<uint16_t>();
  expectExtremesOfType<int32_t>();
  expectExtremesOfType<int64_t>();
  expectExtremesOfType<uint32_t>();
  expectExtremesOfType<uint64_t>();
  expectExtremesOfType<float>();
  expectExtremesOfType<double>();
}

TEST(Reduction, SumsOfEveryType) {
  auto check = [](auto example) {
    using T = decltype(example);
    Kernel k = kernel("sums", [](ArrayRef<T, 1> x, ArrayRef<T, 1> out) {
      out(0) = sum(x.size(), [&](Index i) { return x(i); });
      out(1) = sum(0, [&](Index i) { return x(i); });
      out(2) = sum(-3, [&](Index i) { return x(i); });
      parallel(1, [&](Index) {
        out(3) = sum(x.size(), [&](Index i) { return x(i); });
      });
    });
    std::vector<T> values(1000);
    std::iota(values.begin(), values.end(), T(1));
    auto x = constant(values), out = constant(std::vector<T>(4, T(9)));
    k(x, out);
    EXPECT_EQ(out.to_host(), (std::vector<T>{500500, 0, 0, 500500}));
  };
  check(int32_t());
  check(int64_t());
  check(uint32_t());
  check(uint64_t());
  check(float());
  check(double());
}

/// In f32, and rounded once.
TEST(Reduction, SumsAndExtremesOfHalves) {
  Kernel k = kernel("halves", [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> out) {
    auto term = [&](Index i) { return x(i); };
    out(0) = sum(x.size(), term);
    out(1) = minimum(x.size(), term);
    out(2) = maximum(x.size(), term);
    out(3) = minimum(0, term);
    parallel(1, [&](Index) {
      out(4) = sum(x.size(), term);
      out(5) = maximum(x.size(), term);
    });
  });
  std::vector<f16> values(3000, f16(1));
  values[7] = -3;
  values[9] = 5;
  Array<f16> x = cpu().array<f16>({3000}, grad),
             out = cpu().array<f16>({6}, grad);
  x.from_host(values);
  k(x, out);
  std::vector<double> got;
  for (f16 value : out.to_host())
    got.push_back(double(value));
  EXPECT_EQ(got, (Values{3000, -3, 5, inf, 3000, 5}));
  out.grad().from_host({1, 10, 100, 1000, 10000, 100000});
  k.grad(x, out);
  std::vector<float> gradient = x.grad().to_host();
  EXPECT_EQ(gradient[0], 10001);
  EXPECT_EQ(gradient[7], 10011);
  EXPECT_EQ(gradient[9], 110101);
}

/// Integers wrap, as they do everywhere.
TEST(Reduction, SumsOfIntegersWrap) {
  Kernel k = kernel("wrap", [](ArrayRef<int, 1> out) {
    out(0) = sum(3, [&](Index) { return Expr<int>(2000000000); });
  });
  auto out = constant<int>({0});
  k(out);
  EXPECT_EQ(out.to_host()[0], int(uint32_t(3) * 2000000000u));
}

TEST(Reduction, TheSameBitsForAnyNumberOfThreads) {
  auto body = [](X x, X out) {
    out(0) = sum(x.size(), [&](Index i) { return sin(x(i)); });
    Expr<double> mean = out(0) / cast<double>(x.size());
    out(1) = sum(x.size(), [&](Index i) { return (x(i) - mean) * x(i); });
  };
  Values values = randomValues(54321, -1, 1);
  for (bool deterministic : {false, true}) {
    std::vector<Values> all;
    for (int threads : {1, 3, 4}) {
      Device device = openDevice({.threads = threads});
      Kernel k = kernel("k", body, {.deterministic = deterministic});
      auto x = device.array<double>({54321}), out = device.array<double>({2});
      x.from_host(values);
      k(x, out);
      all.push_back(out.to_host());
    }
    EXPECT_EQ(all[0], all[1]);
    EXPECT_EQ(all[0], all[2]);
  }
}

//===-- Gradients ---------------------------------------------------------===//

TEST(Reduction, GradientsOfSerialCode) {
  Kernel softmax = kernel("softmax", [](X x, X y) {
    Expr<double> most = maximum(x.size(), [&](Index i) { return x(i); });
    Expr<double> total =
        sum(x.size(), [&](Index i) { return exp(x(i) - most); });
    parallel(x.size(), [&](Index i) { y(i) = exp(x(i) - most) / total; });
  });
  auto x = active<double>({0.3, 1.2, -0.7, 0.9}), y = active(Values(4));
  expectGradients({x}, {y}, softmax, x, y);

  Kernel variance = kernel("variance", [](X x, S v) {
    Expr<double> n = cast<double>(x.size());
    Expr<double> mean = sum(elements(x), [&](Index i) { return x(i); }) / n;
    v() = sum(elements(x),
              [&](Index i) {
                Expr<double> d = x(i) - mean;
                return d * d;
              }) /
          (n - 1.0);
  });
  auto v = zeroScalar(true);
  expectGradients({x}, {v}, variance, x, v);
}

TEST(Reduction, GradientsGoToTheWinner) {
  Kernel k = kernel("nearest", [](M points, X query, X target, S loss) {
    auto distance = [&](Index i) {
      return sum(query.size(), [&](Index d) {
        Expr<double> r = points(i, d) - query(d);
        return r * r;
      });
    };
    Index nearest = argmin(points.size(0), distance);
    Expr<double> least = minimum(points.size(0), distance);
    loss() = target(nearest) * least + distance(nearest);
  });
  auto points = active(randomValues(12, -1, 1), {4, 3});
  auto query = active<double>({0.1, 0.2, 0.3});
  auto target = active<double>({1, 2, 3, 4});
  auto loss = zeroScalar(true);
  expectGradients({points, query, target}, {loss}, k, points, query, target,
                  loss);
}

TEST(Reduction, GradientsOfWorkItems) {
  Kernel k = kernel("rows", [](M m, X y) {
    parallel(m.size(0), [&](Index r) {
      auto row = [&](Index j) { return m(r, j); };
      Expr<double> most = maximum(m.size(1), row);
      Expr<double> least = minimum(m.size(1), row);
      Expr<double> total =
          sum(m.size(1), [&](Index j) { return exp(m(r, j) - most); });
      Index at = argmin(m.size(1), row);
      y(r) = log(total) + most * least + m(r, at) * m(r, 0);
    });
  });
  auto m = active(randomValues(20, -1, 1), {4, 5}), y = active(Values(4));
  expectGradients({m}, {y}, k, m, y);
}

/// On ties the first one; nothing from a range without numbers.
TEST(Reduction, GradientsAtTies) {
  for (bool inWorkItem : {false, true}) {
    Kernel k = kernel("ties", [&](X x, S y) {
      auto all = [&] {
        y() += 2.0 * minimum(x.size(), [&](Index i) { return x(i); }) +
               3.0 * maximum(x.size(), [&](Index i) { return x(i); });
      };
      if (inWorkItem)
        parallel(1, [&](Index) { all(); });
      else
        all();
    });
    auto y = zeroScalar(true);
    auto gradient = [&](const Values &values) {
      auto x = active(values);
      y.from_host({0});
      k(x, y);
      y.grad().fill(1);
      k.grad(x, y);
      return x.grad().to_host();
    };
    EXPECT_EQ(gradient({4, 1, 4, 1}), (Values{3, 2, 0, 0}));
    EXPECT_EQ(gradient({nan, 5, nan}), (Values{0, 5, 0}));
    EXPECT_EQ(gradient({nan, nan}), (Values{0, 0}));
  }
}

TEST(Reduction, SecondDerivatives) {
  Kernel k = kernel("second", [](X x, S y) {
    Expr<double> most = maximum(x.size(), [&](Index i) { return x(i) * x(i); });
    Expr<double> total = sum(x.size(), [&](Index i) { return sin(x(i)); });
    y() = most * total;
  });
  auto x = active<double>({0.3, 1.2, -0.7}), y = zeroScalar(true);
  // y = b^2 s for x = (a, b, c), where s is the sum of sines.
  x.dual().from_host({0, 1, 0});
  k.jvp(x, y);
  y.grad().fill(1);
  k.gradient().jvp(x, y);
  double b = 1.2, s = std::sin(0.3) + std::sin(b) + std::sin(-0.7);
  Values column = x.grad().dual().to_host();
  EXPECT_NEAR(column[0], 2 * b * std::cos(0.3), 1e-12);
  EXPECT_NEAR(column[1], 2 * s + 4 * b * std::cos(b) - b * b * std::sin(b),
              1e-12);
  EXPECT_NEAR(column[2], 2 * b * std::cos(-0.7), 1e-12);
}

/// A launch that is not reached gives what an empty range gives.
TEST(Reduction, AfterAReturn) {
  Kernel k = kernel("returns", [](X x, X out) {
    IF (x(0) > 0) {
      RETURN;
    }
    out(0) = sum(x.size(), [&](Index i) { return x(i) * x(i); });
    out(1) = minimum(x.size(), [&](Index i) { return x(i); });
  });
  auto x = active<double>({1, 2}), out = active<double>({7, 8});
  k(x, out);
  EXPECT_EQ(out.to_host(), (Values{7, 8}));
  x.from_host({-1, 2});
  k(x, out);
  EXPECT_EQ(out.to_host(), (Values{5, -1}));
  out.grad().from_host({1, 10});
  k.grad(x, out);
  EXPECT_EQ(x.grad().to_host(), (Values{8, 4}));
}

/// Sizes that a reduction has found.
TEST(Reduction, GivesTheExtentOfALaterRange) {
  Kernel k = kernel("sizes", [](X x, ArrayRef<int, 1> sizes, X out) {
    Index n = maximum(sizes.size(), [&](Index i) { return sizes(i); });
    Index count = sum(sizes.size(), [&](Index i) { return sizes(i) > 1; });
    parallel({n, count}, [&](Index i, Index j) { out(0) += x(i) * x(j); });
  });
  auto x = active<double>({1, 2, 3, 4}), out = active<double>({0});
  auto sizes = constant<int>({2, 1, 3});
  k(x, sizes, out);
  EXPECT_EQ(out.to_host()[0], 18);
  out.grad().fill(1);
  k.grad(x, sizes, out);
  EXPECT_EQ(x.grad().to_host(), (Values{9, 9, 3, 0}));
}

/// Each term is computed once, so that it does not matter which bits it has.
TEST(Reduction, PlacesOfLooseTerms) {
  Kernel k = kernel("k",
                    [](X x, S y, ArrayRef<int64_t, 0> at) {
                      auto term = [&](Index i) { return sin(x(i)) / x(i); };
                      y() = minimum(x.size(), term);
                      at() = argmin(x.size(), term);
                    },
                    {.fast_math = true});
  Values values = randomValues(5000, 1, 9);
  auto x = constant(values), y = zeroScalar(false);
  auto at = cpu().array<int64_t>({});
  k(x, y, at);
  double found = values[size_t(at.to_host()[0])];
  EXPECT_NEAR(y.to_host()[0], std::sin(found) / found, 1e-12);
  for (double value : values)
    EXPECT_GE(std::sin(value) / value, y.to_host()[0] - 1e-12);
}

/// Of integers the greatest one counts like others.
TEST(Reduction, PlacesOfTheGreatestInteger) {
  using I = ArrayRef<int64_t, 1>;
  Kernel k = kernel("k", [](I x, I at) {
    at(0) = argmin(x.size(), [&](Index i) { return x(i); });
    at(1) = argmax(x.size(), [&](Index i) { return -x(i) - 1; });
    at(2) = argmin(0, [&](Index i) { return x(i); });
  });
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  auto x = constant<int64_t>({most, most, most});
  auto at = constant(std::vector<int64_t>(3, 7));
  k(x, at);
  EXPECT_EQ(at.to_host(), (std::vector<int64_t>{0, 0, -1}));
}

//===-- Mistakes ----------------------------------------------------------===//

int line = 0;

template <class F> void expectBadKernel(const std::string &text, F &&body) {
  expectError(ErrorCode::BadKernel, {text}, [&] { kernel("bad", body); });
  try {
    kernel("bad", body);
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(here(__FILE__, line)),
              std::string::npos)
        << error.what();
  }
}

TEST(Reduction, TermsOnlyCompute) {
  expectBadKernel("the term of a reduction stores into an array", [](X x) {
    x(0) = sum(3, [&](Index i) {
      line = __LINE__ + 1;
      x(i) = 1;
      return x(i);
    });
  });
  expectBadKernel("the term of a reduction assigns a `Var`", [](X x) {
    parallel(1, [&](Index) {
      Var<double> last = 0.0;
      x(0) = sum(3, [&](Index i) {
        line = __LINE__ + 1;
        last = x(i);
        return last;
      });
    });
  });
  expectBadKernel("the term of a reduction has a `RETURN`", [](X x) {
    x(0) = minimum(3, [&](Index i) {
      line = __LINE__ + 1;
      RETURN;
      return x(i);
    });
  });
  expectBadKernel("the term of a reduction adds to an array", [](X x) {
    Index at = argmin(3, [&](Index i) {
      line = __LINE__ + 1;
      x(0) += 1.0;
      return x(i);
    });
    x(at) = 1;
  });
}

/// What a term declares itself is its own.
TEST(Reduction, TermsMayLoopAndBranch) {
  Kernel k = kernel("horner", [](X x, X c, S y) {
    y() = sum(x.size(), [&](Index i) {
      Var<double> p = 0.0;
      FOR (d, 0, c.size()) {
        IF (c(d) < 0) {
          CONTINUE;
        }
        p = p * x(i) + c(d);
      }
      return p;
    });
  });
  auto x = active<double>({0.5, -1, 2}), c = active<double>({1, -7, 2, 3});
  auto y = zeroScalar(true);
  expectGradients({x, c}, {y}, k, x, c, y);
  k(x, c, y);
  EXPECT_NEAR(y.to_host()[0], 4.25 + 2 + 11, 1e-12);
}

} // namespace
