/// Operators on integers of every type, compared with the rules of the
/// language.

#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

/// Operations on integers of type T, each in a row of its own.
template <class T> Kernel integerOperations() {
  return kernel("integers", [](ArrayRef<T, 1> a, ArrayRef<T, 1> b,
                               ArrayRef<T, 2> out, Scalar<T> s) {
    parallel(a.size(), [&](Index i) {
      Expr<T> x = a(i), y = b(i);
      Var<T> v = x;
      v += y;
      v -= s;
      v *= 3;
      v /= 2;
      v %= 7;
      v &= 5;
      v |= 8;
      v ^= 3;
      v <<= 2;
      v >>= 1;
      Expr<T> compared = cast<T>(x == y) + cast<T>(x != y) * 2 +
                         cast<T>(x <= y) * 4 + cast<T>(x > y) * 8;
      std::vector<Expr<T>> rows = {x + y,
                                   x - y,
                                   x * y,
                                   x / y,
                                   x % y,
                                   -x,
                                   ~x,
                                   x & y,
                                   x | y,
                                   x ^ y,
                                   x << y,
                                   x >> y,
                                   abs(x),
                                   min(x, y),
                                   max(x, y),
                                   clamp(x, y, s),
                                   select(x < y, x, y),
                                   compared,
                                   v,
                                   7 / x};
      for (size_t row = 0; row < rows.size(); ++row)
        out(row, i) = rows[row];
    });
  });
}

/// The same on the host, by the rules of the language guide.
template <class T> struct Host {
  using U = std::make_unsigned_t<T>;
  static constexpr int mask = sizeof(T) * 8 - 1;
  static constexpr bool isMinusOne(T v) {
    return std::is_signed_v<T> && v == T(-1);
  }
  static T wrap(U v) { return static_cast<T>(v); }
  static T div(T a, T b) {
    return b == 0 ? 0 : isMinusOne(b) ? wrap(0 - U(a)) : a / b;
  }
  static T rem(T a, T b) { return b == 0 || isMinusOne(b) ? 0 : a % b; }
  static T absolute(T a) {
    return std::is_signed_v<T> && a < 0 ? wrap(0 - U(a)) : a;
  }
  static T assigned(T x, T y, T s) {
    T v = wrap((U(x) + U(y) - U(s)) * 3);
    v = rem(div(v, 2), 7);
    v = ((v & 5) | 8) ^ 3;
    return wrap(U(v) << 2) >> 1;
  }
  static std::vector<T> rows(T x, T y, T s) {
    T compared = (x == y) + (x != y) * 2 + (x <= y) * 4 + (x > y) * 8;
    return {wrap(U(x) + U(y)),
            wrap(U(x) - U(y)),
            wrap(static_cast<U>(uint64_t(U(x)) * U(y))),
            div(x, y),
            rem(x, y),
            wrap(0 - U(x)),
            T(~x),
            T(x & y),
            T(x | y),
            T(x ^ y),
            wrap(U(x) << (U(y) & mask)),
            T(x >> (U(y) & mask)),
            absolute(x),
            std::min(x, y),
            std::max(x, y),
            std::min(std::max(x, y), s),
            x < y ? x : y,
            compared,
            assigned(x, y, s),
            div(7, x)};
  }
};

template <class T> class Integers : public testing::Test {};
using IntegerTypes = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t,
                                    uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, EveryOperatorIsTotal) {
  using T = TypeParam;
  constexpr T least = std::numeric_limits<T>::min();
  constexpr T most = std::numeric_limits<T>::max();
  std::vector<T> as = {0, 1, T(-1), least, most, 13, T(-13), 5, 7, 100};
  std::vector<T> bs = {0, 0, T(-1), T(-1), 2, T(-5), 5, 33, 65, 3};
  size_t count = Host<T>::rows(0, 0, 0).size();
  auto a = constant<T>(as), b = constant<T>(bs);
  auto out = cpu().array<T>({count, as.size()});
  integerOperations<T>()(a, b, out, T(9));
  std::vector<T> got = out.to_host();
  for (size_t i = 0; i < as.size(); ++i) {
    std::vector<T> want = Host<T>::rows(as[i], bs[i], 9);
    for (size_t row = 0; row < count; ++row)
      EXPECT_EQ(got[row * as.size() + i], want[row])
          << "row " << row << " of " << as[i] << ", " << bs[i];
  }
}

} // namespace
