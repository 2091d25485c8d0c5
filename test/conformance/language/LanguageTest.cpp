/// What a kernel may contain, run and compared with the same thing in C++.

#include "conformance/Gradients.h"

#include <array>
#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

// RULE: loops
TEST(LanguageConformance, LoopsAtTheBordersOfTheirType) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  Kernel k = kernel("steps", [](ArrayRef<int64_t, 2> loop,
                                ArrayRef<int64_t, 2> out, Scalar<int> limit) {
    parallel(loop.size(0), [&](Index i) {
      Var<int64_t> count = 0, last = -1;
      FOR (k, loop(i, 0), loop(i, 1), loop(i, 2)) {
        IF (count >= limit) {
          BREAK;
        }
        count += 1;
        last = k;
      }
      out(i, 0) = count;
      out(i, 1) = last;
    });
  });
  std::vector<std::array<int64_t, 3>> loops = {{0, 10, 3},
                                               {10, 0, -3},
                                               {10, 0, 1},
                                               {0, 10, -1},
                                               {5, 5, 1},
                                               {least, most, 1},
                                               {most, least, -1},
                                               {most - 3, most, 2},
                                               {least + 3, least, -2},
                                               {least, most, most},
                                               {most, least, least},
                                               {0, 1, most}};
  std::vector<int64_t> flat;
  for (const auto &loop : loops)
    flat.insert(flat.end(), loop.begin(), loop.end());
  int64_t count = loops.size();
  auto in = constant<int64_t>(flat, {count, 3});
  auto out = cpu().array<int64_t>({count, 2});
  k(in, out, 20);
  std::vector<int64_t> got = out.to_host();
  for (int64_t i = 0; i < count; ++i) {
    auto [lo, hi, step] = loops[i];
    int64_t iterations = 0, last = -1;
    for (__int128 at = lo; (step > 0 ? at < hi : at > hi) && iterations < 20;
         at += step, ++iterations)
      last = static_cast<int64_t>(at);
    EXPECT_EQ(got[2 * i], iterations) << "loop " << i;
    EXPECT_EQ(got[2 * i + 1], last) << "loop " << i;
  }
}

/// The kernel `Nest` below, in C++. Returns the result and whether it came to
/// the end.
std::pair<int64_t, bool> nest(int iterations) {
  int64_t s = 0;
  for (int64_t p = 0; p < iterations; ++p) {
    if (p % 3 == 1)
      continue;
    int q = 0;
    while (q < 10) {
      q += 1;
      if (q % 2 == 0)
        continue;
      if (q > 7)
        break;
      for (int64_t z = q; z > -1; z -= 2) {
        s += z * p;
        if (s > 500)
          return {s, false};
        if (z == 1)
          break;
      }
      s += 1;
    }
    if (s > 400)
      break;
    if (s > 200) {
      s += 5;
      continue;
    }
    s += 11;
  }
  return {s, true};
}

// RULE: loops
TEST(LanguageConformance, JumpsInNests) {
  Kernel k =
      kernel("nest", [](ArrayRef<int, 1> iterations, ArrayRef<int64_t, 1> out,
                        ArrayRef<bool, 1> ended) {
        parallel(iterations.size(), [&](Index i) {
          Var<int64_t> s = 0;
          FOR (p, 0, iterations(i)) {
            IF (p % 3 == 1) {
              CONTINUE;
            }
            Var<int> q = 0;
            WHILE (q < 10) {
              q += 1;
              IF (q % 2 == 0) {
                CONTINUE;
              }
              IF (q > 7) {
                BREAK;
              }
              FOR (z, q, -1, -2) {
                s += z * p;
                IF (s > 500) {
                  out(i) = s;
                  RETURN;
                }
                IF (z == 1) {
                  BREAK;
                }
              }
              s += 1;
            }
            IF (s > 400) {
              BREAK;
            }
            ELIF (s > 200) {
              s += 5;
              CONTINUE;
            }
            ELSE { s += 11; }
          }
          out(i) = s;
          ended(i) = true;
        });
      });
  std::vector<int> iterations(40);
  for (int i = 0; i < 40; ++i)
    iterations[i] = i - 3;
  auto in = constant<int>(iterations);
  auto out = cpu().array<int64_t>({40});
  auto ended = cpu().array<bool>({40});
  k(in, out, ended);
  for (int i = 0; i < 40; ++i) {
    auto [value, whole] = nest(iterations[i]);
    EXPECT_EQ(out.to_host()[i], value) << i;
    EXPECT_EQ(ended.to_host()[i], whole) << i;
  }
}

TEST(LanguageConformance, SerialValuesFlowIntoRanges) {
  Kernel k = kernel("flow", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                               ArrayRef<double, 0> sum, ArrayRef<double, 0> out,
                               Scalar<int> stop) {
    Var<double> scale = 2;
    parallel(x.size(), [&](Index i) { sum() += x(i) * x(i); });
    Var<double> norm = sqrt(sum());
    FOR (k, 0, 3) {
      norm = norm * 1.1;
    }
    IF (stop > 0) {
      RETURN;
    }
    parallel(x.size(), [&](Index i) { y(i) = scale * x(i) / norm; });
    scale *= 3;
    parallel(y.size(), [&](Index i) { out() += scale * y(i) * y(i) * x(i); });
  });
  auto x = active<double>({1, 2, 3, 4, 5}), y = active<double>({7, 7, 7, 7, 7});
  auto sum = cpu().array<double>({}, grad | dual);
  auto out = cpu().array<double>({}, grad | dual);
  k(x, y, sum, out, 1);
  EXPECT_EQ(y.to_host()[0], 7);
  EXPECT_EQ(sum.to_host()[0], 55);
  sum.fill(0);
  k(x, y, sum, out, 0);
  double norm = std::sqrt(55.0) * 1.331, want = 0;
  for (int i = 1; i < 6; ++i)
    want += 6 * std::pow(2 * i / norm, 2) * i;
  EXPECT_NEAR(out.to_host()[0], want, 1e-13 * want);
  sum.fill(0);
  out.fill(0);
  expectGradients({x}, {y, sum, out}, k, x, y, sum, out, 0);
}

Expr<double> power(const Expr<double> &x, int n) {
  if (n == 0)
    return 1.0;
  Expr<double> half = power(x, n / 2);
  return n % 2 ? half * half * x : half * half;
}

struct Pendulum {
  Var<double> angle, speed;
  void step(Expr<double> dt) {
    speed -= dt * sin(angle);
    angle += dt * speed;
  }
};

TEST(LanguageConformance, RecursionStructsAndArraysOfVariables) {
  Kernel k = kernel("blocks", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Pendulum p{x(i), 0.0};
      FOR (t, 0, 20) {
        p.step(0.1);
      }
      std::array<Var<double>, 2> pair = {p.angle, p.speed};
      FOR (t, 0, 3) {
        pair[0] = pair[0] * x(0);
        std::swap(pair[0], pair[1]);
      }
      y(i) = power(x(i), 13) + pair[0] - 2 * pair[1];
    });
  });
  auto x = active<double>({0.3, 0.7, 1.1}), y = active<double>({0, 0, 0});
  expectGradients({x}, {y}, k, x, y);
}

TEST(LanguageConformance, EightDimensions) {
  Kernel k = kernel("eight", [](ArrayRef<double, 8> x, ArrayRef<double, 8> y) {
    parallel({x.size(0), x.size(1), x.size(2), x.size(3), x.size(4), x.size(5),
              x.size(6), x.size(7)},
             [&](Index a, Index b, Index c, Index d, Index e, Index f, Index g,
                 Index h) {
               Expr<int64_t> sum =
                   a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h;
               y(a, b, c, d, e, f, g, h) =
                   x(a, b, c, d, e, f, g, h) * cast<double>(sum);
             });
  });
  std::vector<int64_t> shape = {2, 1, 3, 2, 1, 2, 3, 2};
  constexpr int weights[] = {1, 2, 3, 5, 7, 11, 13, 17};
  auto x = active<double>(std::vector<double>(144, 0.5), shape);
  auto y = active<double>(std::vector<double>(144, 0), shape);
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  for (size_t at = 0; at < 144; ++at) {
    int64_t rest = at, sum = 0;
    for (int d = 7; d >= 0; --d) {
      sum += weights[d] * (rest % shape[d]);
      rest /= shape[d];
    }
    EXPECT_EQ(y.to_host()[at], 0.5 * sum);
    EXPECT_EQ(x.grad().to_host()[at], sum);
  }
}

TEST(LanguageConformance, NothingToDo) {
  Kernel squares =
      kernel("squares",
             [](ArrayRef<double, 2> x, ArrayRef<double, 0> sum, Scalar<int> n) {
               parallel({x.size(0), x.size(1)},
                        [&](Index i, Index j) { sum() += x(i, j) * x(i, j); });
               parallel(n, [&](Index) { sum() += 1; });
             });
  for (std::vector<int64_t> shape : {std::vector<int64_t>{0, 4}, {4, 0}}) {
    auto x = active<double>({}, shape);
    auto sum = cpu().array<double>({}, grad | dual);
    sum.fill(3);
    sum.grad().fill(1);
    squares(x, sum, -5);
    squares.grad(x, sum, -5);
    squares.jvp(x, sum, 0);
    EXPECT_EQ(sum.to_host()[0], 3);
    EXPECT_TRUE(x.grad().to_host().empty());
  }
}

/// Functions have the bits of the device, whether operands are known or not.
TEST(LanguageConformance, FunctionsOfKnownOperandsHaveTheSameBits) {
  constexpr int count = 40;
  auto functions = [](const Expr<double> &x) {
    return sin(x) + exp(x) * 1e-3 + log(x) * 1e-6 + pow(x, 1.7) * 1e-9;
  };
  std::vector<double> values = randomValues(count, 0.5, 4);
  Kernel known = kernel("known", [&](ArrayRef<double, 1> y) {
    for (int k = 0; k < count; ++k)
      y(k) = functions(values[size_t(k)]);
  });
  Kernel loaded =
      kernel("loaded", [&](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = functions(x(i)); });
      });
  auto x = constant<double>(values), y = cpu().array<double>({count}),
       z = cpu().array<double>({count});
  known(y);
  loaded(x, z);
  EXPECT_EQ(y.to_host(), z.to_host());
}

/// What is folded is what the device would compute.
TEST(LanguageConformance, AnglesOfZerosThatAreKnown) {
  Device device = Device::best();
  Kernel traced = kernel("traced", [](ArrayRef<double, 1> y) {
    Expr<double> zero = 0.0, minus = -0.0;
    y(0) = atan2(zero, zero);
    y(1) = atan2(minus, zero);
    y(2) = atan2(zero, minus);
    y(3) = atan2(minus, minus);
  });
  Kernel read = Kernel::from_ir(R"(
costate.kernel @read(%y: !costate.array<f64, 1>) {
  %zero = arith.constant 0.0 : f64
  %at = arith.constant 0 : i64
  %angle = math.atan2 %zero, %zero : f64
  costate.store %angle, %y[%at] : !costate.array<f64, 1>
})");
  auto y = device.array<double>({4}), one = device.array<double>({1});
  traced(y);
  std::vector<double> angles = y.to_host();
  for (int k = 0; k < 4; ++k) {
    double wanted = std::atan2(k % 2 ? -0.0 : 0.0, k > 1 ? -0.0 : 0.0);
    EXPECT_DOUBLE_EQ(angles[size_t(k)], wanted);
    EXPECT_EQ(std::signbit(angles[size_t(k)]), std::signbit(wanted));
  }
  one.fill(1);
  read(one);
  EXPECT_EQ(one.to_host(), std::vector<double>{0});
}

TEST(LanguageConformance, AdditionsToIntegers) {
  constexpr int count = 10003;
  Kernel k =
      kernel("histogram", [](ArrayRef<int, 1> v, ArrayRef<int, 1> a,
                             ArrayRef<int64_t, 1> b, ArrayRef<uint32_t, 1> c) {
        parallel(v.size(), [&](Index i) {
          Expr<int> bin = v(i) % 10;
          a(bin) += 1;
          b(bin) += v(i);
          c(bin) -= 1u;
        });
      });
  std::vector<int> values(count);
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    values[i] = i;
    sum += i % 10 == 2 ? i : 0;
  }
  auto v = constant<int>(values);
  auto a = cpu().array<int>({10});
  auto b = cpu().array<int64_t>({10});
  auto c = cpu().array<uint32_t>({10});
  k(v, a, b, c);
  EXPECT_EQ(a.to_host()[2], 1001);
  EXPECT_EQ(a.to_host()[3], 1000);
  EXPECT_EQ(b.to_host()[2], sum);
  EXPECT_EQ(c.to_host()[2], uint32_t(-1001));
}

} // namespace
