/// The conventions of docs/guide/kinks.md: what every operation gives, and what
/// its derivatives are, at kinks, edges and poles. And: nothing comes out of
/// what was not done or does not count, however singular.

#include "Labels.h"
#include "conformance/Gradients.h"

#include <limits>
#include <numbers>

COSTATE_LABEL("KinkBehindABranch.*", repeats);

using namespace costate;
using namespace costate::test;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double any = 1.23e300; ///< not defined, so not tested
constexpr double pi = std::numbers::pi, ln2 = std::numbers::ln2,
                 ln10 = std::numbers::ln10;

/// Operands, the result, its partial derivatives of first and second order.
struct Point {
  double a, b, value, da, db, aa = any, ab = any, bb = any;
};

struct Operation {
  const char *name;
  Expr<double> (*inF64)(Expr<double>, Expr<double>);
  Expr<float> (*inF32)(Expr<float>, Expr<float>);
  std::vector<Point> points;

  Expr<double> apply(Expr<double> a, Expr<double> b) const {
    return inF64(a, b);
  }
  Expr<float> apply(Expr<float> a, Expr<float> b) const { return inF32(a, b); }
};

template <class T> T identity(const T &x) { return x; }

#define OPERATION(...)                                                         \
  #__VA_ARGS__,                                                                \
      []([[maybe_unused]] Expr<double> a, [[maybe_unused]] Expr<double> b) {   \
        using T [[maybe_unused]] = double;                                     \
        return identity<Expr<double>>(__VA_ARGS__);                            \
      },                                                                       \
      []([[maybe_unused]] Expr<float> a, [[maybe_unused]] Expr<float> b) {     \
        using T [[maybe_unused]] = float;                                      \
        return identity<Expr<float>>(__VA_ARGS__);                             \
      }

// clang-format off
const std::vector<Operation> operations = {
  //               a     b     value  da    db    aa    ab    bb
  {OPERATION(a + b), {
                 {inf,  -inf,  nan,   1,    1,    0,    0,    0}}},
  {OPERATION(a - b), {
                 {1,    1,     0,     1,    -1,   0,    0,    0}}},
  {OPERATION(-a), {
                 {0,    0,     0,     -1,   0,    0,    0,    0}}},
  {OPERATION(a * b), {
                 {0,    0,     0,     0,    0,    0,    1,    0},
                 {0,    inf,   nan,   inf,  0,    0,    1,    0}}},
  {OPERATION(a / b), {
                 {1,    0,     inf,   inf,  -inf},
                 {-1,   0,     -inf,  inf,  inf},
                 {0,    0,     nan,   inf,  nan},
                 {0,    2,     0,     .5,   0,    0,    -.25, 0},
                 {1,    inf,   0,     0,    0,    0,    0,    0}}},
  {OPERATION(fmod(a, b)), {
                 {6,    2,     0,     1,    -3,   0,    0,    0},
                 {-6,   2,     0,     1,    3,    0,    0,    0},
                 {1,    .25,   0,     1,    -4,   0,    0,    0},
                 {5,    inf,   5,     1,    0,    0,    0,    0},
                 {1,    0,     nan,   1,    nan}}},
  {OPERATION(a % b), {
                 {6,    -2,    0,     1,    3,    0,    0,    0}}},
  {OPERATION(min(a, b)), {
                 {1,    1,     1,     .5,   .5,   0,    0,    0},
                 {-0.0, 0,     0,     .5,   .5,   0,    0,    0},
                 {1,    2,     1,     1,    0,    0,    0,    0},
                 {2,    1,     1,     0,    1,    0,    0,    0},
                 {nan,  2,     2,     0,    1,    0,    0,    0},
                 {2,    nan,   2,     1,    0,    0,    0,    0},
                 {inf,  inf,   inf,   .5,   .5,   0,    0,    0}}},
  {OPERATION(min(b, a)), {
                 {1,    1,     1,     .5,   .5,   0,    0,    0},
                 {1,    2,     1,     1,    0,    0,    0,    0}}},
  {OPERATION(max(a, b)), {
                 {1,    1,     1,     .5,   .5,   0,    0,    0},
                 {0,    -0.0,  0,     .5,   .5,   0,    0,    0},
                 {1,    2,     2,     0,    1,    0,    0,    0},
                 {2,    1,     2,     1,    0,    0,    0,    0},
                 {nan,  2,     2,     0,    1,    0,    0,    0},
                 {2,    nan,   2,     1,    0,    0,    0,    0},
                 {-inf, -inf,  -inf,  .5,   .5,   0,    0,    0}}},
  {OPERATION(max(a, -a + 2 * b)), {
                 {1,    1,     1,     0,    1,    0,    0,    0}}},
  {OPERATION(max(a, 0)), {
                 {0,    0,     0,     .5,   0,    0,    0,    0},
                 {-1,   0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(max(0, a)), {
                 {0,    0,     0,     .5,   0,    0,    0,    0}}},
  {OPERATION(clamp(a, -1, 1)), {
                 {-1,   0,     -1,    1,    0,    0,    0,    0},
                 {1,    0,     1,     1,    0,    0,    0,    0},
                 {-2,   0,     -1,    0,    0,    0,    0,    0},
                 {2,    0,     1,     0,    0,    0,    0,    0},
                 {nan,  0,     -1,    0,    0,    0,    0,    0}}},
  {OPERATION(clamp(a, b, 1)), {
                 {.5,   .5,    .5,    1,    0,    0,    0,    0},
                 {.25,  .5,    .5,    0,    1,    0,    0,    0},
                 {1,    .5,    1,     1,    0,    0,    0,    0},
                 {.25,  2,     1,     0,    0,    0,    0,    0},
                 {.5,   nan,   .5,    1,    0,    0,    0,    0},
                 {nan,  .5,    .5,    0,    1,    0,    0,    0},
                 {nan,  nan,   1,     0,    0,    0,    0,    0}}},
  {OPERATION(cast<T>(clamp(cast<int>(a), -1, cast<int>(b)))), {
                 {-5,   3,     -1,    0,    0,    0,    0,    0},
                 {7,    3,     3,     0,    0,    0,    0,    0},
                 {2,    3,     2,     0,    0,    0,    0,    0}}},
  {OPERATION(abs(a)), {
                 {0,    0,     0,     0,    0,    0,    0,    0},
                 {-0.0, 0,     0,     0,    0,    0,    0,    0},
                 {-3,   0,     3,     -1,   0,    0,    0,    0},
                 {-inf, 0,     inf,   -1,   0,    0,    0,    0}}},
  {OPERATION(floor(a)), {
                 {2,    0,     2,     0,    0,    0,    0,    0},
                 {-.5,  0,     -1,    0,    0,    0,    0,    0}}},
  {OPERATION(ceil(a)), {
                 {2,    0,     2,     0,    0,    0,    0,    0}}},
  {OPERATION(round(a)), {
                 {2.5,  0,     3,     0,    0,    0,    0,    0},
                 {-2.5, 0,     -3,    0,    0,    0,    0,    0}}},
  {OPERATION(trunc(a)), {
                 {-2,   0,     -2,    0,    0,    0,    0,    0}}},
  {OPERATION(sign(a)), {
                 {0,    0,     0,     0,    0,    0,    0,    0},
                 {-3,   0,     -1,    0,    0,    0,    0,    0},
                 {nan,  0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(mod(a, b)), {
                 {6,    2,     0,     1,    -3,   0,    0,    0},
                 {-5,   2,     1,     1,    3,    0,    0,    0},
                 {5,    -2,    -1,    1,    3,    0,    0,    0},
                 {-1,   0,     nan,   1,    nan}}},
  {OPERATION(floor_div(a, b)), {
                 {6,    2,     3,     0,    0,    0,    0,    0},
                 {-5,   2,     -3,    0,    0,    0,    0,    0}}},
  {OPERATION(fract(a)), {
                 {2,    0,     0,     1,    0,    0,    0,    0},
                 {-.25, 0,     .75,   1,    0,    0,    0,    0}}},
  {OPERATION(a * floor(b)), {
                 {3,    2,     6,     2,    0,    0,    0,    0}}},
  {OPERATION(cast<T>(cast<int>(a))), {
                 {2,    0,     2,     0,    0,    0,    0,    0},
                 {nan,  0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(cast<T>(cast<bool>(a))), {
                 {0,    0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(cast<T>(cast<float>(a))), {
                 {.5,   0,     .5,    1,    0,    0,    0,    0}}},
  {OPERATION(a * cast<T>(a > b)), {
                 {1,    1,     0,     0,    0,    0,    0,    0},
                 {2,    1,     2,     1,    0,    0,    0,    0}}},
  {OPERATION(a * cast<T>(7 / cast<int>(b) + (cast<int>(b) << 3) % 5)), {
                 {1,    0,     0,     0,    0,    0,    0,    0},
                 {1,    2,     4,     4,    0,    0,    0,    0}}},
  {OPERATION(select(a > 0, log(a), b)), {
                 {0,    5,     5,     0,    1,    0,    0,    0},
                 {1,    5,     0,     1,    0,    -1,   0,    0}}},
  {OPERATION(select(a == b, sqrt(a), a / b)), {
                 {0,    0,     0,     inf,  0},
                 {0,    1,     0,     1,    0,    0,    -1,   0}}},
  {OPERATION(sqrt(a)), {
                 {0,    0,     0,     inf,  0,    -inf, 0,    0},
                 {-0.0, 0,     0,     -inf, 0},
                 {-1,   0,     nan,   nan,  0,    nan},
                 {inf,  0,     inf,   0,    0,    0,    0,    0}}},
  {OPERATION(rsqrt(a)), {
                 {0,    0,     inf,   -inf, 0,    inf,  0,    0},
                 {inf,  0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(cbrt(a)), {
                 {0,    0,     0,     inf,  0},
                 {-0.0, 0,     0,     inf,  0},
                 {-8,   0,     -2,    1/12., 0,   1/144., 0,  0}}},
  {OPERATION(exp(a)), {
                 {1000, 0,     inf,   inf,  0,    inf,  0,    0},
                 {-inf, 0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(exp2(a)), {
                 {2000, 0,     inf,   inf,  0,    inf,  0,    0},
                 {0,    0,     1,     ln2,  0,    ln2*ln2, 0, 0}}},
  {OPERATION(exp10(a)), {
                 {1000, 0,     inf,   inf,  0,    inf,  0,    0},
                 {0,    0,     1,     ln10, 0,    ln10*ln10, 0, 0},
                 {-inf, 0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(expm1(a)), {
                 {1000, 0,     inf,   inf,  0,    inf,  0,    0},
                 {-inf, 0,     -1,    0,    0,    0,    0,    0}}},
  {OPERATION(log(a)), {
                 {0,    0,     -inf,  inf,  0,    -inf, 0,    0},
                 {-2,   0,     nan,   -.5,  0,    -.25},
                 {inf,  0,     inf,   0,    0,    0,    0,    0}}},
  {OPERATION(log2(a)), {
                 {0,    0,     -inf,  inf,  0,    -inf, 0,    0}}},
  {OPERATION(log10(a)), {
                 {0,    0,     -inf,  inf,  0,    -inf, 0,    0}}},
  {OPERATION(log1p(a)), {
                 {-1,   0,     -inf,  inf,  0,    -inf, 0,    0},
                 {0,    0,     0,     1,    0,    -1,   0,    0}}},
  {OPERATION(pow(a, b)), {
                 {0,    -1,    inf,   -inf, -inf},
                 {0,    0,     1,     0,    0,    0,    any,  0},
                 {0,    .5,    0,     inf,  0,    -inf, any,  0},
                 {0,    1,     0,     1,    0,    0,    any,  0},
                 {0,    1.5,   0,     0,    0,    inf,  any,  0},
                 {0,    2,     0,     0,    0,    2,    0,    0},
                 {0,    2.5,   0,     0,    0,    0,    0,    0},
                 {0,    3,     0,     0,    0,    0,    0,    0},
                 {-2,   0,     1,     0,    nan,  0},
                 {-2,   1,     -2,    1,    nan,  0},
                 {-2,   3,     -8,    12,   nan,  -12},
                 {-2,   -1,    -.5,   -.25, nan,  -.25},
                 {-2,   .5,    nan,   nan,  nan},
                 {2,    0,     1,     0,    ln2,  0,    .5,   ln2*ln2},
                 {nan,  0,     1,     0,    nan,  0},
                 {inf,  0,     1,     0,    inf,  0}}},
  {OPERATION(pow(a, cast<T>(cast<int>(b)))), {
                 {0,    0,     1,     0,    0,    0,    0,    0},
                 {0,    1,     0,     1,    0,    0,    0,    0},
                 {0,    2,     0,     0,    0,    2,    0,    0},
                 {-2,   3,     -8,    12,   0,    -12,  0,    0},
                 {-2,   2,     4,     -4,   0,    2,    0,    0}}},
  {OPERATION(pow(a, 0)), {
                 {0,    0,     1,     0,    0,    0,    0,    0}}},
  {OPERATION(pow(a, 1)), {
                 {0,    0,     0,     1,    0,    0,    0,    0},
                 {-2,   0,     -2,    1,    0,    0,    0,    0}}},
  {OPERATION(pow(a, 2)), {
                 {0,    0,     0,     0,    0,    2,    0,    0},
                 {-3,   0,     9,     -6,   0,    2,    0,    0}}},
  {OPERATION(pow(a, .5)), {
                 {0,    0,     0,     inf,  0,    -inf, 0,    0}}},
  {OPERATION(pow(0, b)), {
                 {0,    0,     1,     0,    0,    0,    0,    0},
                 {0,    2,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(pow(-2, b)), {
                 {0,    2,     4,     0,    nan}}},
  {OPERATION(hypot(a, b)), {
                 {0,    0,     0,     0,    0,    inf,  0,    inf},
                 {0,    2,     2,     0,    1,    .5,   0,    0},
                 {3,    4,     5,     .6,   .8,   .128, -.096, .072}}},
  {OPERATION(sqrt(a * a + b * b)), {
                 {0,    0,     0,     any,  any},
                 {3,    4,     5,     .6,   .8,   .128, -.096, .072}}},
  {OPERATION(sin(a)), {
                 {inf,  0,     nan,   nan,  0}}},
  {OPERATION(cos(a)), {
                 {-inf, 0,     nan,   nan,  0},
                 {0,    0,     1,     0,    0,    -1,   0,    0}}},
  {OPERATION(tan(a)), {
                 {inf,  0,     nan,   nan,  0},
                 {0,    0,     0,     1,    0,    0,    0,    0}}},
  {OPERATION(asin(a)), {
                 {1,    0,     pi/2,  inf,  0,    inf,  0,    0},
                 {-1,   0,     -pi/2, inf,  0,    -inf, 0,    0},
                 {2,    0,     nan,   nan,  0}}},
  {OPERATION(acos(a)), {
                 {1,    0,     0,     -inf, 0,    -inf, 0,    0},
                 {-1,   0,     pi,    -inf, 0,    inf,  0,    0}}},
  {OPERATION(atan(a)), {
                 {inf,  0,     pi/2,  0,    0},
                 {0,    0,     0,     1,    0,    0,    0,    0}}},
  {OPERATION(atan2(a, b)), {
                 {0,    0,     0,     0,    0},
                 {0,    1,     0,     1,    0,    0,    -1,   0},
                 {0,    -1,    pi,    -1,   0,    0,    -1,   0},
                 {1,    0,     pi/2,  0,    -1,   0,    1,    0}}},
  {OPERATION(sinh(a)), {
                 {1000, 0,     inf,   inf,  0,    inf,  0,    0}}},
  {OPERATION(cosh(a)), {
                 {0,    0,     1,     0,    0,    1,    0,    0},
                 {-1000, 0,    inf,   -inf, 0,    inf,  0,    0}}},
  {OPERATION(tanh(a)), {
                 {1000, 0,     1,     0,    0,    0,    0,    0}}},
  {OPERATION(asinh(a)), {
                 {0,    0,     0,     1,    0,    0,    0,    0}}},
  {OPERATION(acosh(a)), {
                 {1,    0,     0,     inf,  0,    -inf, 0,    0},
                 {.5,   0,     nan,   nan,  0}}},
  {OPERATION(atanh(a)), {
                 {1,    0,     inf,   inf,  0,    inf,  0,    0},
                 {-1,   0,     -inf,  inf,  0,    -inf, 0,    0}}},
  {OPERATION(erf(a)), {
                 {40,   0,     1,     0,    0,    0,    0,    0}}},
  {OPERATION(erfc(a)), {
                 {40,   0,     0,     0,    0,    0,    0,    0}}},
  {OPERATION(fma(a, b, a)), {
                 {0,    -1,    0,     0,    0,    0,    1,    0}}},
};
// clang-format on

const int64_t operationCount = static_cast<int64_t>(operations.size());
constexpr int64_t pointCount = 16; ///< the last point fills the row

Point pointOf(const Operation &operation, int64_t i) {
  size_t last = operation.points.size() - 1;
  return operation.points[std::min<size_t>(i, last)];
}

template <class T> const Kernel &everyOperation() {
  static const Kernel all =
      kernel("kinks", [](ArrayRef<T, 2> a, ArrayRef<T, 2> b, ArrayRef<T, 2> y) {
        for (size_t op = 0; op < operations.size(); ++op)
          parallel(pointCount, [&](Index i) {
            y(op, i) =
                operations[op].apply(Expr<T>(a(op, i)), Expr<T>(b(op, i)));
          });
      });
  return all;
}

template <class T> const Kernel &everyGradient() {
  static const Kernel all =
      Kernel::from_ir(everyOperation<T>().ir(detail::Mode::Gradient));
  return all;
}

/// The same value: inf and NaN exactly, zeros without their sign.
template <class T> bool agree(T got, double want) {
  double tolerance = sizeof(T) == 8 ? 1e-13 : 2e-6;
  if (want == any || (std::isnan(want) && std::isnan(got)) || got == want)
    return true;
  return want != 0 && std::isfinite(want) &&
         std::abs(got - want) <= tolerance * std::abs(want);
}

/// All points of all operations, and one of the columns of Point.
template <class T> class Table {
public:
  Table() : a(column(&Point::a)), b(column(&Point::b)), y(filled(0)) {}

  static Array<T> filled(double value) {
    Array<T> array = cpu().array<T>({operationCount, pointCount}, grad | dual);
    array.fill(static_cast<T>(value));
    array.grad().fill(0);
    array.dual().fill(0);
    return array;
  }

  static Array<T> column(double Point::*member) {
    std::vector<T> values;
    for (const Operation &operation : operations)
      for (int64_t i = 0; i < pointCount; ++i)
        values.push_back(static_cast<T>(pointOf(operation, i).*member));
    Array<T> array = filled(0);
    array.from_host(values);
    return array;
  }

  static void expect(const Array<T> &got, double Point::*member,
                     const char *what) {
    compare(got, what, [&](const Point &point) { return point.*member; });
  }

  static void expectZero(const Array<T> &got, const char *what) {
    compare(got, what, [](const Point &) { return 0.0; });
  }

  template <class F>
  static void compare(const Array<T> &array, const char *what, F &&wanted) {
    std::vector<T> got = array.to_host();
    size_t at = 0;
    for (const Operation &operation : operations)
      for (int64_t i = 0; i < pointCount; ++i, ++at) {
        Point point = pointOf(operation, i);
        EXPECT_TRUE(agree(got[at], wanted(point)))
            << what << " of " << operation.name << " at a = " << point.a
            << ", b = " << point.b << ": " << got[at] << " instead of "
            << wanted(point);
      }
  }

  Array<T> a, b, y;
};

template <class T> class Kink : public testing::Test {};
using Floats = testing::Types<double, float>;
TYPED_TEST_SUITE(Kink, Floats);

TYPED_TEST(Kink, Values) {
  Table<TypeParam> t;
  everyOperation<TypeParam>()(t.a, t.b, t.y);
  t.expect(t.y, &Point::value, "value");
}

TYPED_TEST(Kink, Reverse) {
  Table<TypeParam> t;
  t.y.grad().fill(1);
  everyOperation<TypeParam>().grad(t.a, t.b, t.y);
  t.expect(t.a.grad(), &Point::da, "d/da");
  t.expect(t.b.grad(), &Point::db, "d/db");
}

TYPED_TEST(Kink, ReverseOfAZeroAdjoint) {
  Table<TypeParam> t;
  everyOperation<TypeParam>().grad(t.a, t.b, t.y);
  t.expectZero(t.a.grad(), "nothing to a");
  t.expectZero(t.b.grad(), "nothing to b");
}

TYPED_TEST(Kink, Forward) {
  Table<TypeParam> t;
  const Kernel &k = everyOperation<TypeParam>();
  t.a.dual().fill(1);
  k.jvp(t.a, t.b, t.y);
  t.expect(t.y.dual(), &Point::da, "d/da");
  t.a.dual().fill(0);
  t.b.dual().fill(1);
  k.jvp(t.a, t.b, t.y);
  t.expect(t.y.dual(), &Point::db, "d/db");
  t.b.dual().fill(0);
  k.jvp(t.a, t.b, t.y);
  t.expectZero(t.y.dual(), "nothing along 0");
}

/// Forward mode over the gradient: its adjoints are arguments like others.
TYPED_TEST(Kink, ForwardOverReverse) {
  using Array = Array<TypeParam>;
  Table<TypeParam> t;
  const Kernel &gradient = everyGradient<TypeParam>();
  auto along = [&](double da, double db, double adjoint) {
    t.a.dual().fill(static_cast<TypeParam>(da));
    t.b.dual().fill(static_cast<TypeParam>(db));
    Array ga = t.filled(0), gb = t.filled(0), gy = t.filled(adjoint);
    gradient.jvp(t.a, t.b, t.y, ga, gb, gy);
    return std::pair(ga.dual(), gb.dual());
  };
  auto [aa, ab] = along(1, 0, 1);
  t.expect(aa, &Point::aa, "d2/da2");
  t.expect(ab, &Point::ab, "d2/dadb");
  auto [ba, bb] = along(0, 1, 1);
  t.expect(ba, &Point::ab, "d2/dbda");
  t.expect(bb, &Point::bb, "d2/db2");
  auto [za, zb] = along(0, 0, 1);
  t.expectZero(za, "nothing of d/da along 0");
  t.expectZero(zb, "nothing of d/db along 0");
  auto [na, nb] = along(1, 1, 0);
  t.expectZero(na, "nothing of d/da for a zero adjoint");
  t.expectZero(nb, "nothing of d/db for a zero adjoint");
}

/// Only the adjoint changes, from 0: the first derivative appears.
TYPED_TEST(Kink, ATangentOfAZeroAdjointCounts) {
  using Array = Array<TypeParam>;
  Table<TypeParam> t;
  const Kernel &gradient = everyGradient<TypeParam>();
  Array ga = t.filled(0), gb = t.filled(0), gy = t.filled(0);
  gy.dual().fill(1);
  gradient.jvp(t.a, t.b, t.y, ga, gb, gy);
  t.expect(ga.dual(), &Point::da, "d/da");
  t.expect(gb.dual(), &Point::db, "d/db");
}

TYPED_TEST(Kink, ForwardOverForward) {
  using Array = Array<TypeParam>;
  Table<TypeParam> t;
  Kernel tangent =
      Kernel::from_ir(everyOperation<TypeParam>().ir(detail::Mode::Tangent));
  auto along = [&](double a1, double b1, double a2, double b2) {
    Array da = t.filled(a1), db = t.filled(b1), dy = t.filled(0);
    t.a.dual().fill(static_cast<TypeParam>(a2));
    t.b.dual().fill(static_cast<TypeParam>(b2));
    tangent.jvp(t.a, t.b, t.y, da, db, dy);
    return dy.dual();
  };
  t.expect(along(1, 0, 1, 0), &Point::aa, "d2/da2");
  t.expect(along(1, 0, 0, 1), &Point::ab, "d2/dadb");
  t.expect(along(0, 1, 1, 0), &Point::ab, "d2/dbda");
  t.expect(along(0, 1, 0, 1), &Point::bb, "d2/db2");
  t.expectZero(along(0, 0, 1, 1), "nothing along 0, 1");
  t.expectZero(along(1, 1, 0, 0), "nothing along 1, 0");
}

//===-- Branches ----------------------------------------------------------===//

/// y = an operation of a and b where the gate is open, else a.
enum class Form { Select, If, Else, For, While };

template <class T> Kernel gated(Form form) {
  return kernel("gated", [=](ArrayRef<T, 2> a, ArrayRef<T, 2> b,
                             ArrayRef<T, 2> y, ArrayRef<int, 0> gate) {
    for (size_t op = 0; op < operations.size(); ++op)
      parallel(pointCount, [&](Index i) {
        Expr<T> x = a(op, i), z = b(op, i);
        Var<T> v = x;
        auto apply = [&] { v = operations[op].apply(x, z); };
        if (form == Form::Select)
          v = select(gate() > 0, operations[op].apply(x, z), x);
        else if (form == Form::If)
          if_(gate() > 0, apply);
        else if (form == Form::Else)
          if_(gate() == 0, [&] { v = x; }, apply);
        else if (form == Form::For) {
          FOR (k, 0, gate()) {
            apply();
          }
        } else if (form == Form::While) {
          Var<int> iteration = 0;
          WHILE (iteration < gate()) {
            apply();
            iteration += 1;
          }
        }
        y(op, i) = v;
      });
  });
}

void expectGated(Form form) {
  using T = double;
  Kernel k = gated<T>(form);
  for (int open : {0, 1}) {
    Table<T> t;
    Array<int> gate = cpu().array<int>({});
    gate.fill(open);
    auto expect = [&](const Array<T> &got, double Point::*member, double closed,
                      const char *what) {
      t.compare(got, what, [&](const Point &point) {
        return open ? point.*member : closed;
      });
    };
    t.y.grad().fill(1);
    k.grad(t.a, t.b, t.y, gate);
    expect(t.a.grad(), &Point::da, 1, "d/da");
    expect(t.b.grad(), &Point::db, 0, "d/db");
    t.a.dual().fill(1);
    k.jvp(t.a, t.b, t.y, gate);
    expect(t.y.dual(), &Point::da, 1, "d/da");
    t.a.dual().fill(0);
    t.b.dual().fill(1);
    k.jvp(t.a, t.b, t.y, gate);
    expect(t.y.dual(), &Point::db, 0, "d/db");
    Kernel gradient = Kernel::from_ir(k.ir(detail::Mode::Gradient));
    Array<T> ga = t.filled(0), gb = t.filled(0), gy = t.filled(1);
    gradient.jvp(t.a, t.b, t.y, gate, ga, gb, gy);
    expect(ga.dual(), &Point::ab, 0, "d2/dbda");
    expect(gb.dual(), &Point::bb, 0, "d2/db2");
  }
}

TEST(KinkBehindABranch, Select) { expectGated(Form::Select); }
TEST(KinkBehindABranch, If) { expectGated(Form::If); }
TEST(KinkBehindABranch, Else) { expectGated(Form::Else); }
TEST(KinkBehindABranch, For) { expectGated(Form::For); }
TEST(KinkBehindABranch, While) { expectGated(Form::While); }

/// What is multiplied with 0 has a zero adjoint. Its tangent need not be 0.
TEST(KinkOfProducts, AFactorOfZeroInReverse) {
  Kernel k =
      kernel("masked", [](ArrayRef<double, 1> x, ArrayRef<double, 1> mask,
                          ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) { y(i) = mask(i) * log(x(i)); });
      });
  auto x = active<double>({0, 2}), y = active<double>({0, 0});
  auto mask = constant<double>({0, 1});
  y.grad().fill(1);
  k.grad(x, mask, y);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{0, .5}));
  x.dual().fill(1);
  k.jvp(x, mask, y);
  EXPECT_TRUE(std::isnan(y.dual().to_host()[0]));
}

/// The adjoint of a norm written by hand is inf * 0 at the origin, its tangent
/// 0 * inf.
TEST(KinkOfProducts, ANormByHand) {
  Kernel k = kernel("norm", [](ArrayRef<double, 1> x, ArrayRef<double, 0> y) {
    y() = sqrt(x(0) * x(0) + x(1) * x(1));
  });
  auto x = active<double>({0, 0}), y = cpu().array<double>({}, grad | dual);
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_TRUE(std::isnan(x.grad().to_host()[0]));
  x.dual().fill(1);
  k.jvp(x, y);
  EXPECT_EQ(y.dual().to_host()[0], 0);
}

//===-- Conditions guard loads --------------------------------------------===//

constexpr KernelOptions checked{.debug = true};

/// All modes with index checks: no load is out of range.
TEST(KinkOfConditions, GuardTheirLoads) {
  Kernel k = kernel(
      "guards",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(y.size(), [&](Index i) {
          Index n = x.size();
          Var<double> v = 0;
          IF ((i < n) & (x(i) > 0)) {
            v += x(i) * x(i);
          }
          IF (~((i >= n) | (x(i) <= 0))) {
            v += 2.0 * x(i);
          }
          IF ((i + 1 < n) & ((x(i) < 0) | (x(i + 1) > 0))) {
            v += x(i) * x(i + 1);
          }
          Var<int64_t> at = i;
          WHILE ((at < n) & (x(at) > 0)) {
            v += sin(x(at));
            at += 1;
          }
          y(i) = v;
        });
      },
      checked);
  auto x = active<double>({1.5, -0.5, 0.75, 2});
  auto y = active(std::vector<double>(7, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

TEST(KinkOfConditions, GuardIndirectLoads) {
  Kernel k = kernel(
      "indirect",
      [](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(at.size(), [&](Index i) {
          Var<double> v = 1;
          IF ((at(i) >= 0) & (x(at(i)) > 0)) {
            v = log(x(at(i)));
          }
          y(i) = v;
        });
      },
      checked);
  auto at = constant<int>({1, -1, 0, -7});
  auto x = active<double>({0, 3}), y = active(std::vector<double>(4, 0.0));
  k(at, x, y);
  std::vector<double> values = y.to_host();
  EXPECT_NEAR(values[0], std::log(3.0), 1e-15);
  EXPECT_EQ(std::vector(values.begin() + 1, values.end()),
            (std::vector<double>{1, 1, 1}));
  y.grad().fill(1);
  k.grad(at, x, y);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{0, 1 / 3.0}));
  x.dual().fill(1);
  k.jvp(at, x, y);
  EXPECT_EQ(y.dual().to_host(), (std::vector<double>{1 / 3.0, 0, 0, 0}));
}

} // namespace
