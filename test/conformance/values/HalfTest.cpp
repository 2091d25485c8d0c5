/// f16: every operation rounds once, derivatives and their sums are f32.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

COSTATE_LABEL("Half.SignsAndConstants", sample);

namespace {

std::vector<f16> allNumbers() {
  std::vector<f16> all;
  for (int bits = 0; bits < 65536; ++bits)
    all.push_back(f16::from_bits(uint16_t(bits)));
  return all;
}

std::vector<f16> someNumbers(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<f16> some(count);
  for (f16 &number : some)
    number = f16::from_bits(uint16_t(engine()));
  return some;
}

/// Of -0 and 0 either one.
bool isSame(f16 a, f16 b) { return a == b || (a != a && b != b); }

void expectNumber(f16 actual, double exact, const std::string &what) {
  EXPECT_TRUE(isSame(actual, f16(exact)))
      << what << " is " << actual << ", not " << f16(exact);
}

/// x rounded to an f16 by the kernel, and back.
TEST(Half, DoublesAreRoundedOnce) {
  std::vector<double> values;
  for (f16 number : allNumbers()) {
    double x = number;
    if (!std::isfinite(x) || x < 0 || x == 65504)
      continue;
    double next = f16::from_bits(uint16_t(number.bits + 1));
    double middle = (x + next) / 2;
    for (double y : {x, middle, std::nextafter(middle, 0),
                     std::nextafter(middle, 1e9), middle * (1 + 1e-9)})
      values.insert(values.end(), {y, -y});
  }
  for (double y : {65519.999, 65520.0, 1e9, 1e300, 5e-8, 1e-300})
    values.insert(values.end(), {y, -y});
  values.push_back(std::nan(""));
  Kernel k = kernel("round", [](ArrayRef<double, 1> x, ArrayRef<f16, 1> y,
                                ArrayRef<double, 1> z) {
    parallel(x.size(), [&](Index i) {
      y[i] = cast<f16>(x[i]);
      z[i] = cast<f16>(x[i]);
    });
  });
  auto x = constant(values), z = constant(values);
  auto y = cpu().array<f16>({values.size()});
  k(x, y, z);
  std::vector<f16> stored = y.to_host();
  std::vector<double> held = z.to_host();
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    f16 want = values[i];
    wrong += !isSame(stored[i], want) ||
             !(held[i] == double(want) ||
               (held[i] != held[i] && values[i] != values[i])) ||
             std::signbit(held[i]) != std::signbit(values[i]);
  }
  EXPECT_EQ(wrong, 0u);
}

/// What is not stored in between.
TEST(Half, SinglesAreRounded) {
  std::vector<float> values;
  for (f16 number : allNumbers())
    for (float factor : {1.0f, 1.0003f, 0.9998f})
      if (float x = number; std::isfinite(x))
        values.push_back(x * factor);
  Kernel k = kernel("round", [](ArrayRef<float, 1> x, ArrayRef<float, 2> y) {
    parallel(x.size(), [&](Index i) {
      Expr<f16> rounded = cast<f16>(x[i]);
      y(0, i) = rounded;
      y(1, i) = select(x[i] > 1, rounded, cast<f16>(x[i] * 3));
      y(2, i) = cast<float>(rounded) - x[i];
      Local<f16, 2> kept;
      kept[cast<int>(i % 2)] = rounded;
      y(3, i) = kept[cast<int>(i % 2)];
      y(4, i) = cast<f16>(cast<int16_t>(i % 32768));
    });
  });
  auto x = constant(values);
  auto y = cpu().array<float>({5, values.size()});
  k(x, y);
  std::vector<float> rows = y.to_host();
  const size_t n = values.size();
  for (size_t i = 0; i < n; ++i) {
    float number = values[i], want = f16(number);
    EXPECT_EQ(rows[i], want) << number;
    EXPECT_EQ(rows[n + i], number > 1 ? want : float(f16(number * 3)))
        << number;
    EXPECT_EQ(rows[2 * n + i], want - number) << number;
    EXPECT_EQ(rows[3 * n + i], want) << number;
    EXPECT_EQ(rows[4 * n + i], float(f16(double(i % 32768)))) << i;
  }
}

TEST(Half, OtherTypesConvert) {
  Kernel k = kernel("convert", [](ArrayRef<f16, 1> x, ArrayRef<float, 1> a,
                                  ArrayRef<int, 1> b, ArrayRef<uint8_t, 1> c,
                                  ArrayRef<bool, 1> d, ArrayRef<f16, 1> e) {
    parallel(x.size(), [&](Index i) {
      a[i] = x[i];
      b[i] = cast<int>(x[i]);
      c[i] = cast<uint8_t>(x[i]);
      d[i] = cast<bool>(x[i]);
      e[i] = cast<f16>(b[i]);
    });
  });
  std::vector<f16> all = allNumbers();
  const Extents shape = {all.size()};
  auto x = constant(all);
  auto a = cpu().array<float>(shape);
  auto b = cpu().array<int>(shape);
  auto c = cpu().array<uint8_t>(shape);
  auto d = cpu().array<bool>(shape);
  auto e = cpu().array<f16>(shape);
  k(x, a, b, c, d, e);
  auto floats = a.to_host();
  auto ints = b.to_host();
  auto bytes = c.to_host();
  auto bools = d.to_host();
  auto halves = e.to_host();
  for (size_t i = 0; i < all.size(); ++i) {
    float value = all[i];
    bool isNaN = value != value;
    EXPECT_TRUE(floats[i] == value || isNaN);
    int whole = isNaN            ? 0
                : value > 65504  ? INT32_MAX
                : value < -65504 ? INT32_MIN
                                 : static_cast<int>(value);
    EXPECT_EQ(ints[i], whole) << value;
    EXPECT_EQ(bytes[i], isNaN          ? 0
                        : value <= 0   ? 0
                        : value >= 255 ? 255
                                       : whole);
    EXPECT_EQ(bools[i], value != 0);
    expectNumber(halves[i], whole, "a whole number");
  }
}

Kernel arithmetic() {
  return kernel("arithmetic", [](ArrayRef<f16, 1> a, ArrayRef<f16, 1> b,
                                 ArrayRef<f16, 2> y, ArrayRef<bool, 1> less) {
    parallel(a.size(), [&](Index i) {
      Expr<f16> x = a[i], z = b[i];
      std::vector<Expr<f16>> rows = {x + z,
                                     x - z,
                                     x * z,
                                     x / z,
                                     sqrt(x),
                                     min(x, z),
                                     max(x, z),
                                     -x,
                                     abs(x),
                                     floor(x),
                                     ceil(x),
                                     round(x),
                                     trunc(x),
                                     fmod(x, z),
                                     x * z + x,
                                     clamp(x, -1, 2),
                                     select(x < z, x, z),
                                     x + 0.1};
      for (size_t row = 0; row < rows.size(); ++row)
        y(row, i) = rows[row];
      less[i] = x < z;
    });
  });
}

std::vector<double> exact(f16 a, f16 b) {
  double x = a, z = b;
  double product = f16(x * z);
  return {x + z,           x - z,
          x * z,           x / z,
          std::sqrt(x),    std::fmin(x, z),
          std::fmax(x, z), -x,
          std::abs(x),     std::floor(x),
          std::ceil(x),    std::round(x),
          std::trunc(x),   std::fmod(x, z),
          product + x,     x != x ? -1 : std::min(std::max(x, -1.0), 2.0),
          x < z ? x : z,   x + double(f16(0.1))};
}

TEST(Half, ArithmeticRoundsEveryOperation) {
  std::vector<f16> as = someNumbers(20000, 1), bs = someNumbers(20000, 2);
  for (size_t i = 0; i < 5000; ++i) // numbers of the same size
    bs[i] = f16::from_bits(uint16_t(as[i].bits ^ (bs[i].bits & 0x83ff)));
  auto a = constant(as), b = constant(bs);
  size_t rows = exact(0, 0).size();
  auto y = cpu().array<f16>({rows, as.size()});
  auto less = cpu().array<bool>({as.size()});
  arithmetic()(a, b, y, less);
  std::vector<f16> got = y.to_host();
  std::vector<bool> compared = less.to_host();
  for (size_t i = 0; i < as.size(); ++i) {
    std::vector<double> want = exact(as[i], bs[i]);
    for (size_t row = 0; row < rows; ++row)
      expectNumber(got[row * as.size() + i], want[row],
                   "row " + std::to_string(row) + " of " +
                       std::to_string(as[i]) + ", " + std::to_string(bs[i]));
    EXPECT_EQ(compared[i], as[i] < bs[i]);
  }
}

/// Computed in f32, and rounded once: 0.501 units in the last place at most.
TEST(Half, FunctionsAreNearlyRounded) {
  Kernel k = kernel("functions", [](ArrayRef<f16, 1> x, ArrayRef<f16, 2> y) {
    parallel(x.size(), [&](Index i) {
      Expr<f16> v = x[i];
      std::vector<Expr<f16>> rows = {sin(v),  cos(v),  exp(v),   log(v),
                                     tanh(v), cbrt(v), erf(v),   rsqrt(v),
                                     atan(v), exp2(v), log1p(v), expm1(v)};
      for (size_t row = 0; row < rows.size(); ++row)
        y(row, i) = rows[row];
    });
  });
  auto exactly = [](double x) -> std::vector<double> {
    return {std::sin(x),  std::cos(x),  std::exp(x),   std::log(x),
            std::tanh(x), std::cbrt(x), std::erf(x),   1 / std::sqrt(x),
            std::atan(x), std::exp2(x), std::log1p(x), std::expm1(x)};
  };
  std::vector<f16> all = allNumbers();
  auto x = constant(all);
  auto y = cpu().array<f16>({12, all.size()});
  k(x, y);
  std::vector<f16> got = y.to_host();
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<double> want = exactly(all[i]);
    for (size_t row = 0; row < want.size(); ++row) {
      f16 actual = got[row * all.size() + i];
      double lowest = want[row] - std::abs(want[row]) * 1e-6,
             highest = want[row] + std::abs(want[row]) * 1e-6;
      EXPECT_TRUE(isSame(actual, f16(want[row])) ||
                  isSame(actual, f16(lowest)) || isSame(actual, f16(highest)))
          << "row " << row << " of " << all[i] << ": " << actual << ", not "
          << want[row];
    }
  }
}

//===-- Derivatives -------------------------------------------------------===//

/// A sum of 100,000 numbers of 2^-12, which an f16 stops to take at 0.5.
TEST(Half, GradientsAddUpInSingle) {
  Kernel k = kernel(
      "shared", [](ArrayRef<f16, 1> w, ArrayRef<f16, 1> x, ArrayRef<f16, 1> y) {
        parallel(y.size(), [&](Index i) { y[i] = w[0] * x[i % x.size()]; });
      });
  constexpr size_t n = 100000;
  auto w = active<f16>({1});
  auto x = active<f16>(std::vector<f16>(10, 0x1p-12));
  auto y = active<f16>(std::vector<f16>(n));
  k(w, x, y);
  Array<float> seed = y.grad();
  seed.fill(1);
  k.grad(w, x, y);
  EXPECT_NEAR(w.grad().to_host()[0], n * 0x1p-12, 1e-3);
  std::vector<float> ofX = x.grad().to_host();
  for (float g : ofX)
    EXPECT_EQ(g, n / 10);
}

/// The same within a work item: in a loop, and in a private array.
TEST(Half, AdjointsOfAWorkItemAreSingle) {
  Kernel k = kernel("loops", [](ArrayRef<f16, 1> x, ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Local<f16, 3> a;
      a[i % 3] = x[i];
      Expr<f16> same = x[i];
      Var<double> sum = 0.0;
      FOR (j, 0, 20000) {
        sum += 0x1p-12 * cast<double>(same) + 0x1p-13 * cast<double>(a[i % 3]);
      }
      y[i] = sum;
    });
  });
  auto x = active<f16>({1, -2});
  auto y = active<double>({0, 0});
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  for (float g : x.grad().to_host())
    EXPECT_NEAR(g, 20000 * (0x1p-12 + 0x1p-13), 1e-4);
}

TEST(Half, TangentsOfPrivateArraysAreSingle) {
  Kernel k = kernel("local", [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> y) {
    parallel(x.size(), [&](Index i) {
      Local<f16, 40> a;
      a[i * i % 40] = x[i];
      y[i] = a[i * i % 40];
    });
  });
  auto x = active<f16>({1, 2, 3}), y = active<f16>({0, 0, 0});
  const std::vector<float> direction = {1.0f / 3, 1e-6f, -1e6f};
  x.dual().from_host(direction);
  k.jvp(x, y);
  EXPECT_EQ(y.dual().to_host(), direction);
}

template <class T> Kernel mixed() {
  return kernel("mixed", [](ArrayRef<T, 1> x, ArrayRef<T, 1> p,
                            ArrayRef<T, 1> y, Scalar<T> s) {
    parallel(x.size(), [&](Index i) {
      Var<T> v = x[i];
      FOR (k, 0, 3) {
        IF (v > p[k]) {
          v = sin(v) * p[k] + s;
        }
        ELSE { v = v / (1 + v * v) - 0.5 * exp(sin(v)); }
      }
      y[i] = v * v + sqrt(abs(x[i]) + 1);
    });
  });
}

/// Reverse mode, forward mode, and the same kernel in double.
TEST(Half, DerivativesAreThoseOfDouble) {
  std::vector<double> at = randomValues(64, -1.5, 1.5, 3), ps = {0.25, -0.5, 1};
  std::vector<f16> xs(at.begin(), at.end());
  std::vector<double> exactXs(xs.begin(), xs.end());
  auto wideX = active<double>(exactXs), wideP = active<double>(ps),
       wideY = active<double>(std::vector<double>(64));
  auto x = active<f16>(xs), p = active<f16>({0.25, -0.5, 1}),
       y = active<f16>(std::vector<f16>(64));
  mixed<double>()(wideX, wideP, wideY, 0.375);
  wideY.grad().fill(1);
  mixed<double>().grad(wideX, wideP, wideY, 0.375);
  Kernel k = mixed<f16>();
  k(x, p, y, 0.375);
  y.grad().fill(1);
  k.grad(x, p, y, 0.375);
  std::vector<float> g = x.grad().to_host();
  std::vector<double> want = wideX.grad().to_host();
  for (size_t i = 0; i < g.size(); ++i)
    EXPECT_NEAR(g[i], want[i], 0x1p-6 * (1 + std::abs(want[i]))) << xs[i];

  std::vector<float> ofP = p.grad().to_host();
  for (size_t i = 0; i < g.size(); ++i) {
    std::vector<float> direction(g.size());
    direction[i] = 1;
    x.dual().from_host(direction);
    k.jvp(x, p, y, 0.375);
    Array<float> dual = y.dual();
    float slope = 0;
    for (float part : dual.to_host())
      slope += part;
    EXPECT_NEAR(g[i], slope, 1e-5 * (1 + std::abs(slope)));
  }
  x.dual().fill(0);
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> direction(3);
    direction[i] = 1;
    p.dual().from_host(direction);
    k.jvp(x, p, y, 0.375);
    float slope = 0;
    for (float part : y.dual().to_host())
      slope += part;
    EXPECT_NEAR(ofP[i], slope, 1e-4 * (1 + std::abs(slope)));
  }
}

/// The product of the Hessian of sum x^3 with a direction is 6 x d.
TEST(Half, SecondDerivatives) {
  Kernel k = kernel("cube", [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> y) {
    parallel(x.size(), [&](Index i) { y[i] = x[i] * x[i] * x[i]; });
  });
  auto x = active<f16>({0.5, -1.25, 2}), y = active<f16>({0, 0, 0});
  x.dual().from_host({1, 2, -1});
  k.jvp(x, y);
  y.grad().fill(1);
  k.gradient().jvp(x, y);
  std::vector<float> first = x.grad().to_host();
  std::vector<float> second = x.grad().dual().to_host();
  const double at[] = {0.5, -1.25, 2}, d[] = {1, 2, -1};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(first[i], 3 * at[i] * at[i], 1e-2);
    EXPECT_NEAR(second[i], 6 * at[i] * d[i], 1e-5);
  }
}

TEST(Half, MinimaPassAdjointsOn) {
  Kernel k = kernel("extrema", [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> y) {
    parallel(x.size(), [&](Index i) {
      atomic_min(y[0], x[i] * 0.1);
      atomic_max(y[1], x[i] * 0.1);
    });
  });
  auto x = active<f16>({3, -7, 5, 11, 2}), y = active<f16>({100, -100});
  k(x, y);
  EXPECT_EQ(float(y.to_host()[0]), float(f16(-7 * float(f16(0.1)))));
  EXPECT_EQ(float(y.to_host()[1]), float(f16(11 * float(f16(0.1)))));
  y.grad().from_host({1, 2});
  k.grad(x, y);
  float tenth = f16(0.1);
  EXPECT_EQ(x.grad().to_host(),
            (std::vector<float>{0, tenth, 0, 2 * tenth, 0}));
}

/// Signs and constants, which GPUs have in the operands of an instruction.
TEST(Half, SignsAndConstants) {
  Kernel k = kernel("signs", [](ArrayRef<f16, 1> x, ArrayRef<uint16_t, 1> n,
                                ArrayRef<f16, 1> y) {
    parallel(x.size(), [&](Index i) {
      Expr<f16> v = x(i);
      y(i) = (abs(v) - v * v) * f16(-4) + f16(1) - max(-v, cast<f16>(n(i)));
    });
  });
  auto x = constant<f16>({-1.5, 2, 0.25});
  auto n = constant<uint16_t>({3, 1, 7});
  auto y = cpu().array<f16>({3});
  k(x, n, y);
  EXPECT_EQ(y.to_host(), (std::vector<f16>{1, 8, -6.75}));
}

TEST(Half, RecordedGradients) {
  Kernel step = kernel("step", [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> a) {
    parallel(x.size(), [&](Index i) { x[i] = x[i] * x[i] * a[0]; });
  });
  Kernel sum = kernel("sum", [](ArrayRef<f16, 1> x, ArrayRef<f16, 0> loss) {
    parallel(x.size(), [&](Index i) { loss() += x[i]; });
  });
  auto x = active<f16>({1.5, -0.5}), a = active<f16>({0.5});
  auto loss = cpu().array<f16>({}, grad | dual);
  Tape tape;
  {
    auto recording = tape.record();
    step(x, a);
    step(x, a);
    sum(x, loss);
  }
  tape.backward(loss);
  // x -> a^3 x^4
  EXPECT_NEAR(float(loss.to_host()[0]), (5.0625 + 0.0625) / 8, 1e-3);
  std::vector<float> g = x.grad().to_host();
  EXPECT_NEAR(g[0], 4 * 3.375 / 8, 2e-3);
  EXPECT_NEAR(g[1], -4 * 0.125 / 8, 2e-3);
  EXPECT_NEAR(a.grad().to_host()[0], 3 * 0.25 * 5.125, 1e-2);
}

//===-- The rest ----------------------------------------------------------===//

TEST(Half, NeighboursAreAddedToAtOnce) {
  for (bool deterministic : {false, true}) {
    Kernel k = kernel("adds",
                      [](ArrayRef<f16, 1> y, Scalar<int> n) {
                        parallel(n, [&](Index i) { y[i % y.size()] += 0.5; });
                      },
                      {.deterministic = deterministic});
    for (int64_t size : {1, 3, 501}) {
      auto y = cpu().array<f16>({size});
      k(y, int(size * 100 + 1));
      std::vector<f16> want(size_t(size), 50);
      want[0] = 50.5;
      std::vector<f16> got = y.to_host();
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(float(got[i]), float(want[i])) << i << " of " << size;
    }
  }
}

TEST(Half, VectorsAndTheirGradients) {
  Kernel k =
      kernel("norms", [](ArrayRef<Vec<f16, 3>, 1> x, ArrayRef<f16, 1> y) {
        parallel(x.size(), [&](Index i) { y[i] = dot(x[i], x[i]); });
      });
  auto x = cpu().array<Vec<f16, 3>>({2}, grad | dual);
  auto y = cpu().array<f16>({2}, grad | dual);
  x.from_host({{1, 2, 3}, {-0.5, 0, 4}});
  k(x, y);
  EXPECT_EQ(float(y.to_host()[0]), 14);
  y.grad().fill(1);
  k.grad(x, y);
  Array<Vec<float, 3>> g = x.grad();
  EXPECT_EQ(g.to_host()[1], (std::array<float, 3>{-1, 0, 8}));
  EXPECT_EQ(g.form().name, "Vec<f32, 3>");
}

TEST(Half, GradientsAreChecked) {
  auto x = active<f16>({0.5, 1.25, -0.75}), p = active<f16>({0.25, -0.5, 1}),
       y = active<f16>({0, 0, 0});
  GradientCheck check = check_gradient(mixed<f16>(), x, p, y, 0.375);
  EXPECT_TRUE(check) << check;
}

TEST(Half, ScalarsAreRounded) {
  Kernel k = kernel("scalar", [](ArrayRef<double, 1> y, Scalar<f16> s) {
    parallel(y.size(), [&](Index i) { y[i] = s; });
  });
  auto y = cpu().array<double>({1});
  k(y, 0.1);
  EXPECT_EQ(y.to_host()[0], double(f16(0.1)));
  k(y, f16(3));
  EXPECT_EQ(y.to_host()[0], 3);
  expectError(ErrorCode::BadArgument, {"was given 70000", "f16"},
              [&] { k(y, 70000); });
}

TEST(Half, OverflowIsFound) {
  Kernel k = kernel("overflow",
                    [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> y) {
                      parallel(x.size(), [&](Index i) { y[i] = x[i] * x[i]; });
                    },
                    {.find_nan = true});
  auto x = constant<f16>({2, 300}), y = constant<f16>({0, 0});
  expectError(ErrorCode::NotFinite, {"cast<f16>(90000) gives inf"}, [&] {
    k(x, y);
    cpu().synchronize();
  });
  for (bool deterministic : {false, true}) {
    Kernel sum =
        kernel("sum",
               [](ArrayRef<f16, 1> x, ArrayRef<f16, 1> y) {
                 parallel(x.size(), [&](Index i) { y[1] += 200 * x[i]; });
               },
               {.deterministic = deterministic, .find_nan = true});
    auto y = constant<f16>({0, 30000});
    expectError(ErrorCode::NotFinite, {"inf"}, [&] {
      sum(x, y);
      cpu().synchronize();
    });
  }
}

TEST(Half, TypesAreChecked) {
  auto x = cpu().array<f16>({2}, grad);
  EXPECT_EQ(x.bytes(), 4u);
  EXPECT_EQ(x.grad().bytes(), 8u);
  EXPECT_EQ(x.grad().dtype(), DType::F32);
  Kernel k = kernel("wants f32", [](ArrayRef<float, 1> x) {
    parallel(x.size(), [&](Index i) { x[i] = 0; });
  });
  expectError(ErrorCode::BadArgument, {"f16"}, [&] { k(x); });
}

} // namespace
