// Every function, operator and statement of the language, by its public name.
#include <costate/costate.h>
#include <costate/syntax.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace costate;
using Real = Expr<double>;

namespace {

int failures = 0;

void expect(const std::string &what, double got, double expected) {
  if (std::abs(got - expected) <= 1e-13 * std::max(1.0, std::abs(expected)))
    return;
  std::printf("%s gives %.17g instead of %.17g\n", what.c_str(), got, expected);
  ++failures;
}

/// A plain C++ struct and a template as building blocks.
struct Complex {
  Real re, im;
};
Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> T square(T x) { return x * x; }

struct Function {
  const char *name;
  std::function<Real(Real, Real)> traced;
  double expected;
};

double run(const Function &function, double a, double b) {
  Kernel k = kernel(function.name,
                    [&](ArrayRef<double, 0> y, Scalar<double> a,
                        Scalar<double> b) { y() = function.traced(a, b); });
  Array<double> y = Device::best().array<double>({});
  k(y, a, b);
  return y.to_host()[0];
}

void functions() {
  const double a = 0.7, b = -0.4;
  const Function all[] = {
      {"neg", [](Real a, Real) { return -a; }, -a},
      {"add", [](Real a, Real b) { return a + b; }, a + b},
      {"sub", [](Real a, Real b) { return 2.0 - a - b; }, 2.0 - a - b},
      {"mul", [](Real a, Real b) { return a * b; }, a * b},
      {"div", [](Real a, Real b) { return a / b; }, a / b},
      {"min", [](Real a, Real b) { return min(a, b); }, b},
      {"max", [](Real a, Real b) { return max(a, b); }, a},
      {"clamp", [](Real a, Real) { return clamp(a, 0.0, 0.5); }, 0.5},
      {"select", [](Real a, Real b) { return select(a < b, a, b); }, b},
      {"abs", [](Real, Real b) { return abs(b); }, 0.4},
      {"floor", [](Real, Real b) { return floor(b); }, -1},
      {"ceil", [](Real a, Real) { return ceil(a); }, 1},
      {"round", [](Real a, Real) { return round(a); }, 1},
      {"trunc", [](Real a, Real) { return trunc(a); }, 0},
      {"fmod", [](Real a, Real b) { return fmod(a, b); }, std::fmod(a, b)},
      {"sqrt", [](Real a, Real) { return sqrt(a); }, std::sqrt(a)},
      {"rsqrt", [](Real a, Real) { return rsqrt(a); }, 1 / std::sqrt(a)},
      {"cbrt", [](Real, Real b) { return cbrt(b); }, std::cbrt(b)},
      {"exp", [](Real a, Real) { return exp(a); }, std::exp(a)},
      {"exp2", [](Real a, Real) { return exp2(a); }, std::exp2(a)},
      {"expm1", [](Real a, Real) { return expm1(a); }, std::expm1(a)},
      {"log", [](Real a, Real) { return log(a); }, std::log(a)},
      {"log2", [](Real a, Real) { return log2(a); }, std::log2(a)},
      {"log10", [](Real a, Real) { return log10(a); }, std::log10(a)},
      {"log1p", [](Real, Real b) { return log1p(b); }, std::log1p(b)},
      {"pow", [](Real a, Real b) { return pow(a, b); }, std::pow(a, b)},
      {"hypot", [](Real a, Real b) { return hypot(a, b); }, std::hypot(a, b)},
      {"sin", [](Real a, Real) { return sin(a); }, std::sin(a)},
      {"cos", [](Real a, Real) { return cos(a); }, std::cos(a)},
      {"tan", [](Real a, Real) { return tan(a); }, std::tan(a)},
      {"asin", [](Real a, Real) { return asin(a); }, std::asin(a)},
      {"acos", [](Real a, Real) { return acos(a); }, std::acos(a)},
      {"atan", [](Real a, Real) { return atan(a); }, std::atan(a)},
      {"atan2", [](Real a, Real b) { return atan2(a, b); }, std::atan2(a, b)},
      {"sinh", [](Real a, Real) { return sinh(a); }, std::sinh(a)},
      {"cosh", [](Real a, Real) { return cosh(a); }, std::cosh(a)},
      {"tanh", [](Real a, Real) { return tanh(a); }, std::tanh(a)},
      {"asinh", [](Real a, Real) { return asinh(a); }, std::asinh(a)},
      {"acosh", [](Real a, Real) { return acosh(1.0 + a); }, std::acosh(1 + a)},
      {"atanh", [](Real a, Real) { return atanh(a); }, std::atanh(a)},
      {"erf", [](Real a, Real) { return erf(a); }, std::erf(a)},
      {"erfc", [](Real a, Real) { return erfc(a); }, std::erfc(a)},
      {"fma", [](Real a, Real b) { return fma(a, b, 1.0); },
       std::fma(a, b, 1.0)},
      {"mod", [](Real a, Real b) { return mod(b, a); }, b + a},
      {"floor_div", [](Real a, Real b) { return floor_div(b, a); }, -1},
      {"sign", [](Real, Real b) { return sign(b); }, -1},
      {"fract", [](Real, Real b) { return fract(b); }, 0.6},
      {"mix", [](Real a, Real b) { return mix(a, b, 0.5); }, (a + b) / 2},
      {"smoothstep", [](Real a, Real) { return smoothstep(0, 1.4, a); }, 0.5},
      {"isnan",
       [](Real a, Real b) {
         return cast<double>(isnan(a) | isinf(b) | ~isfinite(a));
       },
       0},
      {"bits",
       [](Real a, Real) { return bit_cast<double>(bit_cast<int64_t>(a)); }, a},
      {"least", [](Real a, Real b) { return min(a, b, -2) + max(a, b, 3); }, 1},
      {"counts",
       [](Real a, Real) {
         return cast<double>(popcnt(cast<int>(a) + 7) + clz(cast<int>(a) + 1) +
                             ffs(cast<int>(a) + 4));
       },
       3 + 31 + 3},
      {"template", [](Real a, Real) { return square(a); }, a * a},
      {"struct",
       [](Real a, Real b) { return (Complex{a, b} * Complex{a, b}).im; },
       2 * a * b},
  };
  for (const Function &function : all)
    expect(function.name, run(function, a, b), function.expected);
}

void integers() {
  Kernel k = kernel("integers", [](ArrayRef<int64_t, 1> y, Scalar<int64_t> a,
                                   Scalar<int64_t> b, Scalar<uint32_t> u) {
    y(0) = a / b;
    y(1) = a % b;
    y(2) = a / (b - b);
    y(3) = (a & b) | (a ^ b);
    y(4) = ~a;
    y(5) = a << 2;
    y(6) = a >> 1;
    y(7) = cast<int64_t>(u >> 31);
    y(8) = cast<int64_t>(cast<int32_t>(cast<double>(a) * 1e300));
    y(9) = select((a < b) | (a == b) | ((a != b) & ~(a >= b)), Expr<int64_t>(1),
                  Expr<int64_t>(2));
    y(10) += a;
    y(10) -= b;
  });
  Array<int64_t> y = Device::best().array<int64_t>({11});
  k(y, -7, 2, 0xffffffffu);
  std::vector<int64_t> got = y.to_host();
  const double expected[] = {
      -3, -1, 0, (-7 & 2) | (-7 ^ 2), 6, -28, -4, 1, -2147483648.0, 1, -9};
  for (int i = 0; i < 11; ++i)
    expect("integer " + std::to_string(i), double(got[i]), expected[i]);
}

void statements() {
  Kernel k =
      kernel("statements", [](ArrayRef<double, 1> y, ArrayRef<bool, 1> odd) {
        parallel(y.size(), [&](Index i) {
          odd(i) = i % 2 == 1;
          IF (i == 5) {
            RETURN;
          }
          Var<double> sum = 0;
          FOR (k, i, -1, -1) {
            IF (k % 3 == 2) {
              CONTINUE;
            }
            sum += cast<double>(k);
          }
          WHILE (sum > 10) {
            IF (sum > 100) {
              BREAK;
            }
            sum *= 0.5;
          }
          IF (sum < 1) {
            y(i) = -1;
          }
          ELIF (sum < 2) {
            y(i) = -2;
          }
          ELSE { y(i) = sum; }
        });
      });
  Array<double> y = Device::best().array<double>({8});
  Array<bool> odd = Device::best().array<bool>({8});
  k(y, odd);
  auto reference = [](int i) {
    double sum = 0;
    for (int k = i; k >= 0; --k)
      sum += k % 3 == 2 ? 0 : k;
    while (sum > 10 && sum <= 100)
      sum *= 0.5;
    return i == 5 ? 0 : sum < 1 ? -1 : sum < 2 ? -2 : sum;
  };
  for (int i = 0; i < 8; ++i) {
    expect("item " + std::to_string(i), y.to_host()[i], reference(i));
    expect("odd", odd.to_host()[i], i % 2);
  }
}

/// The same control flow without macros.
void plainFunctions() {
  Kernel k = kernel("plain", [](ArrayRef<float, 0> y, Scalar<int> n) {
    Var<float> sum = 0;
    for_(0, n, [&](Index i) {
      if_(i == 1, [] { continue_(); });
      if_(i == 5, [] { break_(); }, [&] { sum += 1.0f; });
    });
    while_([&] { return sum < 10.0f; }, [&] { sum += 4.0f; });
    y() = sum;
    return_();
  });
  Array<float> y = Device::best().array<float>({});
  k(y, 100);
  expect("plain functions", y.to_host()[0], 12);
}

void derivatives() {
  Kernel k = kernel("cube", [](ArrayRef<double, 1> x, ArrayRef<double, 0> y,
                               Scalar<double> s) {
    parallel(x.size(), [&](Index i) { y() += s * x(i) * x(i) * x(i); });
  });
  Device device = Device::open("cpu");
  Array<double> x = device.array<double>({3}, grad | dual),
                y = device.array<double>({}, grad | dual);
  x.from_host({1, 2, 3});
  x.dual().fill(1);
  k.jvp(x, y, 2.0);
  expect("primal of jvp", y.to_host()[0], 72);
  expect("tangent", y.dual().to_host()[0], 84);
  y.grad().fill(1);
  k.grad(x, y, 2.0);
  expect("adjoint", x.grad().to_host()[1], 24);
  Tape tape;
  {
    auto recording = tape.record();
    k(x, y, 1.0);
  }
  x.grad().fill(0);
  tape.backward(y);
  expect("adjoint by a tape", x.grad().to_host()[2], 27);
  expect("check_gradient", check_gradient(k, x, y, 2.0).ok, 1);
  expect("report", k.report().empty(), 0);
}

void narrowNumbers() {
  Kernel k = kernel("narrow", [](ArrayRef<f16, 1> x, ArrayRef<std::int8_t, 1> n,
                                 ArrayRef<Vec<f16, 3>, 1> v, ArrayRef<f16, 1> y,
                                 ArrayRef<std::int8_t, 1> m, Scalar<f16> s) {
    parallel(x.size(), [&](Index i) {
      Local<std::uint16_t, 7> counts;
      counts[i % 7] += 65535;
      counts[i % 7] += 3;
      Var<f16> a = x[i] * 0.5 + s;
      Expr<std::int16_t> wide = n[i];
      IF (a > f16(1)) {
        a = sqrt(a) * cast<f16>(wide);
      }
      m[i] = n[i] * 3;
      y[i] = max(a, 0) * cast<f16>(counts[i % 7]) + dot(v[i], v[i]);
    });
  });
  Device device = Device::best();
  Array<f16> x = device.array<f16>({2}, grad), y = device.array<f16>({2}, grad);
  Array<std::int8_t> n = device.array<std::int8_t>({2}),
                     m = device.array<std::int8_t>({2});
  Array<Vec<f16, 3>> v = device.array<Vec<f16, 3>>({2}, grad);
  x.from_host({1, 7});
  n.fill(50);
  v.fill({1, 2, 0.5});
  k(x, n, v, y, m, f16(0.5));
  expect("an f16", y.to_host()[0], 2 + 5.25);
  expect("another one", y.to_host()[1], 200 + 5.25);
  expect("an int8_t", m.to_host()[0], -106);
  y.grad().fill(1);
  k.grad(x, n, v, y, m, 0.5);
  std::vector<float> g = x.grad().to_host();
  expect("an adjoint of f16", g[0], 1);
  std::vector<std::array<float, 3>> h = v.grad().to_host();
  expect("an adjoint of a vector of f16", h[1][2], 1);
  f16 sum = 0;
  for (f16 number : x.to_host())
    sum = f16(sum + number);
  expect("a sum on the host", sum, 8);
  expect("the largest number", std::numeric_limits<f16>::max(), 65504);
}

void errors() {
  Kernel k =
      kernel("one", [](ArrayRef<double, 1> x) { x(0) = 1; }, {.debug = true});
  try {
    k(Device::best().array<float>({1}));
    ++failures;
  } catch (const Error &error) {
    expect("error code", error.code() == ErrorCode::BadArgument, 1);
  }
}

} // namespace

int main() {
  functions();
  integers();
  statements();
  plainFunctions();
  derivatives();
  narrowNumbers();
  errors();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
