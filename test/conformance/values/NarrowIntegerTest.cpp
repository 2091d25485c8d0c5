/// Integers of 8 and 16 bits: conversions, arrays whose elements share a word,
/// private arrays, scalars, and what is refused.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

template <class T> class NarrowIntegers : public testing::Test {};
using Types = testing::Types<int8_t, int16_t, uint8_t, uint16_t>;
TYPED_TEST_SUITE(NarrowIntegers, Types);

/// x converted to every type, one after the other.
template <class T> Kernel conversions() {
  return kernel(
      "conversions",
      [](ArrayRef<T, 1> x, ArrayRef<int8_t, 1> a, ArrayRef<uint8_t, 1> b,
         ArrayRef<int16_t, 1> c, ArrayRef<uint16_t, 1> d, ArrayRef<int, 1> e,
         ArrayRef<uint64_t, 1> f, ArrayRef<double, 1> g, ArrayRef<bool, 1> h) {
        parallel(x.size(), [&](Index i) {
          a[i] = cast<int8_t>(x[i]);
          b[i] = cast<uint8_t>(x[i]);
          c[i] = cast<int16_t>(x[i]);
          d[i] = cast<uint16_t>(x[i]);
          e[i] = cast<int>(x[i]);
          f[i] = cast<uint64_t>(x[i]);
          g[i] = cast<double>(x[i]);
          h[i] = cast<bool>(x[i]);
        });
      });
}

/// As the language says it.
template <class To, class From> To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To>) {
    if (std::isnan(value))
      return 0;
    constexpr auto least = std::numeric_limits<To>::min();
    constexpr auto most = std::numeric_limits<To>::max();
    return value <= double(least)  ? least
           : value >= double(most) ? most
                                   : static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void expectConverted(Array<To> actual, const std::vector<From> &values) {
  std::vector<To> got = actual.to_host();
  for (size_t i = 0; i < values.size(); ++i) {
    To want = converted<To>(values[i]);
    EXPECT_TRUE(got[i] == want || want != want)
        << +values[i] << " as " << nameOf(dtypeOf<To>) << " is " << +got[i];
  }
}

template <class T> void expectConversions(const std::vector<T> &values) {
  auto x = constant(values);
  const Extents shape = {values.size()};
  auto a = cpu().array<int8_t>(shape);
  auto b = cpu().array<uint8_t>(shape);
  auto c = cpu().array<int16_t>(shape);
  auto d = cpu().array<uint16_t>(shape);
  auto e = cpu().array<int>(shape);
  auto f = cpu().array<uint64_t>(shape);
  auto g = cpu().array<double>(shape);
  auto h = cpu().array<bool>(shape);
  conversions<T>()(x, a, b, c, d, e, f, g, h);
  expectConverted(a, values);
  expectConverted(b, values);
  expectConverted(c, values);
  expectConverted(d, values);
  expectConverted(e, values);
  expectConverted(f, values);
  expectConverted(g, values);
  expectConverted(h, values);
}

TYPED_TEST(NarrowIntegers, EveryNumberConverts) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> values;
  for (int value = Limits::min(); value <= Limits::max(); ++value)
    values.push_back(TypeParam(value));
  expectConversions(values);
}

TEST(NarrowInteger, WideNumbersWrap) {
  expectConversions<int>({0, 127, 128, 255, 256, -1, -128, -129, 32767, 32768,
                          65535, 65536, 1 << 30, INT32_MIN, INT32_MAX});
  expectConversions<int64_t>({0, 127, 128, -1, -129, 65535, 65536, INT64_MIN,
                              INT64_MAX, int64_t(1) << 40, 0x1234567890});
}

TEST(NarrowInteger, FloatsSaturate) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  expectConversions<double>({0,       -0.0,   0.99,   -0.99,   127.9,
                             128,     -128.9, -129,   255.5,   256,
                             32767.5, 32768,  -32769, 65535.9, 65536,
                             2e9,     -2e9,   inf,    -inf,    std::nan("")});
}

/// Elements that no work item touches lie between and after the others.
template <class T> Kernel updates() {
  return kernel("updates", [](ArrayRef<T, 1> sum, ArrayRef<T, 1> least,
                              ArrayRef<T, 1> most, Scalar<int> n) {
    parallel(n, [&](Index i) {
      Expr<int64_t> j = i % sum.size();
      IF (j % 4 != 2) {
        sum[j] += cast<T>(i);
        sum[j] -= 3;
        atomic_min(least[j], cast<T>(i * 7));
        atomic_max(most[j], cast<T>(i * 7));
      }
    });
  });
}

TYPED_TEST(NarrowIntegers, NeighboursAreUpdatedAtOnce) {
  using T = TypeParam;
  constexpr int n = 20011;
  for (size_t size : {1, 3, 7, 1001}) {
    std::vector<T> sums(size, T(11)), least(size, T(5)), most(size, T(6));
    auto a = constant(sums), b = constant(least), c = constant(most);
    updates<T>()(a, b, c, n);
    for (int i = 0; i < n; ++i) {
      size_t j = size_t(i) % size;
      if (j % 4 == 2)
        continue;
      sums[j] = T(sums[j] + i - 3);
      least[j] = std::min(least[j], T(i * 7));
      most[j] = std::max(most[j], T(i * 7));
    }
    EXPECT_EQ(a.to_host(), sums);
    EXPECT_EQ(b.to_host(), least);
    EXPECT_EQ(c.to_host(), most);
  }
}

TYPED_TEST(NarrowIntegers, ArraysStartAtZeroAndAreFilled) {
  using T = TypeParam;
  auto x = cpu().array<T>({5});
  EXPECT_EQ(x.bytes(), 5 * sizeof(T));
  EXPECT_EQ(x.to_host(), std::vector<T>(5, 0));
  x.fill(T(-3));
  EXPECT_EQ(x.to_host(), std::vector<T>(5, T(-3)));
}

/// A histogram of digits in a private array, whose counts wrap.
TYPED_TEST(NarrowIntegers, PrivateArraysHoldNarrowNumbers) {
  using T = TypeParam;
  Kernel k = kernel("digits", [](ArrayRef<int, 1> n, ArrayRef<T, 2> counts) {
    parallel(n.size(), [&](Index i) {
      Local<T, 40> count;
      FOR (k, 0, n[i]) {
        count[(k * k) % 40] += 97;
      }
      FOR (d, 0, 40) {
        counts(i, d) = count[d];
      }
    });
  });
  std::vector<int> n = {0, 1, 77, 5000};
  auto a = constant(n);
  auto counts = cpu().array<T>({n.size(), 40});
  k(a, counts);
  std::vector<T> want(n.size() * 40);
  for (size_t i = 0; i < n.size(); ++i)
    for (int64_t k = 0; k < n[i]; ++k) {
      T &count = want[i * 40 + size_t(k * k % 40)];
      count = T(count + 97);
    }
  EXPECT_EQ(counts.to_host(), want);
}

/// y = x^n with an exponent and a table of signs that are narrow.
TEST(NarrowInteger, SteersDerivatives) {
  Kernel k =
      kernel("powers", [](ArrayRef<double, 1> x, ArrayRef<int8_t, 1> sign,
                          ArrayRef<uint8_t, 1> n, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> p = 1.0;
          Var<uint8_t> left = n[i];
          WHILE (left > 0) {
            p *= x[i];
            left -= 1;
          }
          y[i] = p * cast<double>(sign[i]);
        });
      });
  auto x = active<double>({1.5, -0.5, 2, 0.75});
  auto sign = constant<int8_t>({1, -1, -1, 1});
  auto n = constant<uint8_t>({3, 2, 0, 5});
  auto y = active<double>({0, 0, 0, 0});
  expectGradients({x}, {y}, k, x, sign, n, y);
}

TEST(NarrowInteger, ScalarsAreChecked) {
  Kernel k = kernel(
      "scalar", [](ArrayRef<int, 1> y, Scalar<int8_t> a, Scalar<uint16_t> b) {
        parallel(y.size(),
                 [&](Index i) { y[i] = cast<int>(a) * 100000 + cast<int>(b); });
      });
  auto y = cpu().array<int>({1});
  k(y, -128, 65535);
  EXPECT_EQ(y.to_host()[0], -12800000 + 65535);
  expectError(ErrorCode::BadArgument, {"was given 128"}, [&] { k(y, 128, 0); });
  expectError(ErrorCode::BadArgument, {"was given -1"}, [&] { k(y, 0, -1); });
}

TEST(NarrowInteger, LiteralsMustFit) {
  expectError(ErrorCode::BadKernel, {"i8"}, [] {
    kernel("literal", [](ArrayRef<int8_t, 1> x) {
      parallel(x.size(), [&](Index i) { x[i] = x[i] + 128; });
    });
  });
}

TEST(NarrowInteger, HasNoGradient) {
  expectError(ErrorCode::BadArgument,
              {"an u8 integer array cannot have a gradient"},
              [] { cpu().array<uint8_t>({3}, grad); });
}

/// A narrow operand takes the type of the wider one, as everywhere.
TEST(NarrowInteger, WidensInExpressions) {
  Kernel k = kernel("widens", [](ArrayRef<int8_t, 1> a, ArrayRef<uint8_t, 1> b,
                                 ArrayRef<int16_t, 1> c, ArrayRef<int, 1> d,
                                 ArrayRef<int64_t, 1> y) {
    parallel(a.size(), [&](Index i) {
      Expr<int16_t> sum = b[i] + c[i];
      Expr<int> product = a[i] * d[i];
      y[i] = sum + product + a[i] + y[b[i]];
    });
  });
  auto a = constant<int8_t>({-100}), y8 = constant<int8_t>({0});
  auto b = constant<uint8_t>({0});
  auto c = constant<int16_t>({-3});
  auto d = constant<int>({1000});
  auto y = constant<int64_t>({7});
  k(a, b, c, d, y);
  EXPECT_EQ(y.to_host()[0], -3 - 100000 - 100 + 7);
}

} // namespace
