/// Tangents in several directions at once.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;

Array<double> directed(const Values &values, int directions) {
  Array<double> array = cpu().array<double>({values.size()}, grad | dual,
                                            {.directions = directions});
  array.from_host(values);
  return array;
}

/// Values and branches that differ between elements, and elements of others.
Kernel coupledKernel(KernelOptions options = {}) {
  return kernel(
      "coupled",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (j, 0, i + 2) {
            IF (v > 0.5) {
              v = v * cos(x(j % x.size()));
            }
            ELSE { v = exp(v) - x(j % x.size()) * x(i); }
          }
          y(i) = v;
        });
      },
      options);
}

constexpr int n = 6;

Values unit(int j) {
  Values values(n);
  values[j] = 1;
  return values;
}

/// The rows of the identity.
Values identity() {
  Values all;
  for (int j = 0; j < n; ++j)
    for (double value : unit(j))
      all.push_back(value);
  return all;
}

TEST(Directions, AWholeJacobianHasTheBitsOfSinglePasses) {
  Kernel k = coupledKernel();
  Values start = randomValues(n, -1, 1), expected;
  auto x = active(start), y = active<double>(Values(n));
  for (int j = 0; j < n; ++j) {
    x.dual().from_host(unit(j));
    k.jvp(x, y);
    for (double value : y.dual().to_host())
      expected.push_back(value);
  }
  auto xs = directed(start, n), ys = directed(Values(n), n);
  EXPECT_EQ(xs.dual().shape(), (std::vector<int64_t>{n, n}));
  xs.dual().from_host(identity());
  k.jvp(xs, ys);
  EXPECT_EQ(ys.to_host(), y.to_host());
  EXPECT_EQ(ys.dual().to_host(), expected);
  EXPECT_NE(expected, Values(n * n));
}

TEST(Directions, AWholeHessianHasTheBitsOfSingleProducts) {
  Kernel k = coupledKernel({.deterministic = true});
  Values start = randomValues(n, -1, 1), expected;
  auto x = active(start), y = active<double>(Values(n));
  for (int j = 0; j < n; ++j) {
    x.dual().from_host(unit(j));
    x.grad().fill(0);
    x.grad().dual().fill(0);
    y.grad().fill(1);
    k.gradient().jvp(x, y);
    for (double value : x.grad().dual().to_host())
      expected.push_back(value);
  }
  auto xs = directed(start, n), ys = directed(Values(n), n);
  xs.dual().from_host(identity());
  ys.grad().fill(1);
  k.gradient().jvp(xs, ys);
  EXPECT_EQ(xs.grad().shape(), (std::vector<int64_t>{n}));
  EXPECT_EQ(xs.grad().dual().shape(), (std::vector<int64_t>{n, n}));
  EXPECT_EQ(xs.grad().to_host(), x.grad().to_host());
  EXPECT_EQ(xs.grad().dual().to_host(), expected);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j)
      EXPECT_NEAR(expected[i * n + j], expected[j * n + i], 1e-13);
  EXPECT_NE(expected, Values(n * n));
}

TEST(Directions, StoresOverwriteAndUpdatesAdd) {
  Kernel k =
      kernel("writes", [](ArrayRef<double, 1> x, ArrayRef<double, 0> stored,
                          ArrayRef<double, 0> added) {
        stored() = x(0) * x(1);
        added() += x(0) * x(1);
      });
  Array<double> x = cpu().array<double>({2}, dual, {.directions = 2});
  Array<double> stored = cpu().array<double>({}, dual, {.directions = 2});
  Array<double> added = cpu().array<double>({}, dual, {.directions = 2});
  x.from_host({3, 5});
  x.dual().from_host({1, 0, 0, 1});
  stored.dual().fill(100);
  added.dual().from_host({100, 200});
  k.jvp(x, stored, added);
  EXPECT_EQ(stored.dual().shape(), (std::vector<int64_t>{2}));
  EXPECT_EQ(stored.dual().to_host(), (Values{5, 3}));
  EXPECT_EQ(added.dual().to_host(), (Values{105, 203}));
}

TEST(Directions, SecondDerivativesAlongEachOfThem) {
  Kernel k =
      kernel("product", [](ArrayRef<double, 1> x, ArrayRef<double, 0> y) {
        y() = x(0) * x(0) * x(1);
      });
  Array<double> x = cpu().array<double>({2}, dual, {.directions = 3});
  Array<double> y = cpu().array<double>({}, dual, {.directions = 3});
  x.from_host({2, 3});
  x.dual().from_host({1, 0, 0, 1, 1, 1});
  x.dual().dual().from_host({0, 0, 0, 0, 1, 0});
  k.tangent().jvp(x, y);
  EXPECT_EQ(y.dual().to_host(), (Values{12, 4, 16}));
  // d'Hd + g x'': H = (6 4; 4 0), g = (12 4)
  EXPECT_EQ(y.dual().dual().to_host(), (Values{6, 0, 14 + 12}));
}

TEST(Directions, OwnStoresAndTheInitialState) {
  Kernel final =
      kernel("final", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                         ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
        parallel(x.size(), [&](Index i) { s() += y(i) * y(i); });
      });
  Values start = {0.5, 1.5, -0.8};
  auto x = directed(start, 2), y = directed(Values(3), 2);
  Array<double> s = cpu().array<double>({}, grad | dual, {.directions = 2});
  x.dual().from_host({1, 1, 1, 2, 0, -1});
  s.grad().fill(1);
  auto product = [&] { final.gradient().jvp(x, y, s); };
  expectError(ErrorCode::CannotReplay, {"has not run on these arrays"},
              product);
  final.jvp(x, y, s);
  product();
  Values hessian = x.grad().dual().to_host();
  for (size_t d = 0; d < 6; ++d) // 12 x^2
    EXPECT_NEAR(hessian[d],
                12 * start[d % 3] * start[d % 3] * x.dual().to_host()[d],
                1e-13);

  Kernel initial =
      kernel("initial", [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) { x(i) = x(i) * x(i); });
        parallel(x.size(), [&](Index i) { s() += x(i) * x(i); });
      });
  x.grad().fill(0);
  x.grad().dual().fill(0);
  initial.gradient().jvp(initial_state, x, s);
  EXPECT_EQ(x.to_host(), start);
  for (size_t d = 0; d < 6; ++d)
    EXPECT_NEAR(x.grad().dual().to_host()[d], hessian[d], 1e-13);
}

/// The recording copies what is overwritten, region by region; the tangents of
/// one element stand in as many places as there are directions.
TEST(Directions, TangentsThatATapeNeedsAreCopiedBeforeTheyAreOverwritten) {
  Kernel square =
      kernel("square", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        y(1) = x(1) * x(1);
      });
  Kernel use = kernel("use", [](ArrayRef<double, 2> t, ArrayRef<double, 1> w,
                                ArrayRef<double, 0> loss) {
    parallel({t.size(0), t.size(1)},
             [&](Index d, Index i) { loss() += w(i) * t(d, i); });
  });
  auto x = directed({3, 5}, 2), y = directed({0, 0}, 2);
  auto w = active<double>({1, 1});
  Array<double> loss = cpu().array<double>({}, grad);
  x.dual().from_host({0, 1, 0, 2});
  square.jvp(x, y);
  Tape tape;
  {
    auto recording = tape.record();
    use(y.dual(), w, loss);
  }
  x.dual().fill(7);
  square.jvp(x, y);
  Values after = y.dual().to_host();
  tape.backward(loss);
  EXPECT_EQ(w.grad().to_host(), (Values{0, 30}));
  EXPECT_EQ(y.dual().to_host(), after);
}

TEST(Directions, SinglePrecisionInDebug) {
  Kernel k = kernel("cubes",
                    [](ArrayRef<float, 2> x, ArrayRef<float, 1> y) {
                      parallel({x.size(0), x.size(1)}, [&](Index i, Index j) {
                        y(i) += x(i, j) * x(i, j) * x(i, j);
                      });
                    },
                    {.debug = true});
  Array<float> x = cpu().array<float>({2, 2}, dual, {.directions = 16});
  Array<float> y = cpu().array<float>({2}, dual, {.directions = 16});
  x.from_host({1, 2, 3, 4});
  std::vector<float> directions(64);
  for (size_t i = 0; i < 64; ++i)
    directions[i] = float(i);
  x.dual().from_host(directions);
  k.jvp(x, y);
  for (size_t d = 0; d < 16; ++d)
    for (size_t i = 0; i < 2; ++i) {
      float a = 2 * i + 1, b = a + 1, *v = &directions[4 * d + 2 * i];
      EXPECT_EQ(y.dual().to_host()[2 * d + i],
                3 * a * a * v[0] + 3 * b * b * v[1]);
    }
}

TEST(Directions, DifferentNumbersAreRefusedByName) {
  Kernel k = coupledKernel();
  auto four = directed(Values(3), 4), two = directed(Values(3), 2),
       one = active<double>(Values(3));
  expectError(ErrorCode::BadArgument,
              {"coupled", "argument 2", "2 directions", "argument 1 in 4",
               "directions"},
              [&] { k.jvp(four, two); });
  expectError(ErrorCode::BadArgument,
              {"argument 2", "one direction", "4 directions"},
              [&] { k.jvp(four, one); });
  expectError(ErrorCode::BadArgument, {"argument 2", "2 directions"},
              [&] { k.gradient().jvp(four, two); });
  k.grad(four, two); // no tangents are used
  Array<double> constant = cpu().array<double>({3});
  Kernel scaled =
      kernel("scaled", [](ArrayRef<double, 1> x, ArrayRef<double, 1> c,
                          ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = c(i) * x(i); });
      });
  auto out = directed(Values(3), 4);
  constant.fill(2);
  four.dual().fill(1);
  scaled.jvp(four, constant, out);
  EXPECT_EQ(out.dual().to_host(), Values(12, 2.0));
}

TEST(Directions, ImpossibleNumbersAreRefusedByName) {
  auto make = [](int directions, Flags flags) {
    return [=] { cpu().array<double>({3}, flags, {.directions = directions}); };
  };
  expectError(ErrorCode::BadArgument, {"17 directions", "1 to 16"},
              make(17, dual));
  expectError(ErrorCode::BadArgument, {"-1 directions", "1 to 16"},
              make(-1, dual));
  expectError(ErrorCode::BadArgument, {"no directions", "add `dual`"},
              make(4, grad));
  expectError(
      ErrorCode::BadArgument, {"(2, 1, 1, 1, 1, 1, 1, 1, 1)", "rank 9"}, [&] {
        cpu().array<double>({1, 1, 1, 1, 1, 1, 1, 1}, dual, {.directions = 2});
      });
  auto one = directed(Values(3), 1);
  EXPECT_EQ(one.dual().shape(), (std::vector<int64_t>{1, 3}));
}

TEST(Directions, TheReportNamesThem) {
  Kernel k = coupledKernel();
  auto x = directed({1, 2}, 3), y = directed({0, 0}, 3);
  k.jvp(x, y);
  EXPECT_NE(k.report().find("tangent with respect to arguments 1, 2, in 3 "
                            "directions: compiled in"),
            std::string::npos)
      << k.report();
}

} // namespace
