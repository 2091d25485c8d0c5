/// Remainders of indices of a range, which are choices where the index is below
/// the divisor: the same numbers for all divisors.

#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

constexpr int forms = 6;
constexpr int64_t least = std::numeric_limits<int64_t>::min(),
                  most = std::numeric_limits<int64_t>::max();

/// The numbers that a kernel computes of index i, shift c and divisor n.
template <class I> std::array<I, forms> formsOf(I i, int64_t c, I n) {
  I rest = (i + c) % n;
  return {rest,
          (i + c + n) % n,
          (i + (n + c)) % n,
          (i + 2 * n + c) % n,
          select(rest < 0, rest + n, rest),
          (c - i) % n};
}

/// Of work items (row, i), by form.
Kernel makeKernel(int64_t c, bool ofExtent) {
  return kernel("remainders", [=](ArrayRef<int64_t, 3> out,
                                  ArrayRef<int, 2> narrow, Scalar<int64_t> n,
                                  Scalar<int> m) {
    parallel({out.size(1), out.size(2)}, [&](Index row, Index i) {
      auto all = formsOf<Index>(i, c, ofExtent ? out.size(2) : Index(n));
      for (int k = 0; k < forms; ++k)
        out(k, row, i) = all[static_cast<size_t>(k)];
    });
    parallel({out.size(1), out.size(2)}, [&](Index row, Index i) {
      narrow(row, i) = (cast<int>(i) + int(c)) % m;
    });
  });
}

int64_t wrapped(uint64_t a) { return static_cast<int64_t>(a); }

int64_t remainder(int64_t a, int64_t n) {
  return n == 0 || n == -1 ? 0 : a % n;
}

std::array<int64_t, forms> plainForms(int64_t i, int64_t c, int64_t n) {
  uint64_t j = uint64_t(i), d = uint64_t(c), m = uint64_t(n);
  int64_t rest = remainder(wrapped(j + d), n);
  return {rest,
          remainder(wrapped(j + d + m), n),
          remainder(wrapped(j + (m + d)), n),
          remainder(wrapped(j + 2 * m + d), n),
          rest < 0 ? wrapped(uint64_t(rest) + m) : rest,
          remainder(wrapped(d - j), n)};
}

void expectForms(const Kernel &k, Array<int64_t> &out, Array<int> &narrow,
                 int64_t c, int64_t n, bool ofExtent) {
  int64_t extent = out.size(2);
  int m = static_cast<int>(std::clamp<int64_t>(n, INT_MIN, INT_MAX));
  k(out, narrow, n, m);
  std::vector<int64_t> found = out.to_host();
  std::vector<int> small = narrow.to_host();
  for (int64_t at = 0; at < 2 * extent; ++at) {
    int64_t i = at % extent;
    auto expected = plainForms(i, c, ofExtent ? extent : n);
    for (int64_t form = 0; form < forms; ++form)
      ASSERT_EQ(found[static_cast<size_t>(form * 2 * extent + at)],
                expected[static_cast<size_t>(form)])
          << "i = " << i << ", c = " << c << ", n = " << n << ", extent "
          << extent << ", form " << form;
    ASSERT_EQ(small[static_cast<size_t>(at)], remainder(i + c, m))
        << "i = " << i << ", c = " << c << ", m = " << m;
  }
}

TEST(Remainders, AreTheSameForAllDivisors) {
  Device device = openDevice({.threads = 2});
  for (int64_t c : {-40, -3, -2, -1, 0, 1, 2, 5})
    for (bool ofExtent : {false, true}) {
      Kernel k = makeKernel(c, ofExtent);
      for (int64_t extent : {1, 2, 3, 7, 70}) {
        Array<int64_t> out = device.array<int64_t>({forms, 2, extent});
        Array<int> narrow = device.array<int>({2, extent});
        for (int64_t n :
             {least, int64_t(-3), int64_t(-1), int64_t(0), int64_t(1),
              int64_t(2), int64_t(3), int64_t(4), extent - 1, extent,
              extent + 1, int64_t(1) << 61, int64_t(3) << 61, most - 1, most})
          expectForms(k, out, narrow, c, n, ofExtent);
      }
    }
}

/// y(i, j) = sin(x(i + 1, j)) x(i, j - 2) + x(i - 1, j + 1)^2, on a torus.
Kernel makeTorus() {
  using X = ArrayRef<double, 2>;
  return kernel("torus", [](X x, X y) {
    Index n = x.size(0), m = x.size(1);
    parallel({n, m}, [&](Index i, Index j) {
      Expr<double> z = x((i - 1 + n) % n, (j + 1) % m);
      y(i, j) = sin(x((i + 1) % n, j)) * x(i, (j - 2 + m) % m) + z * z;
    });
  });
}

/// The sum of y, and its gradient, by hand.
std::vector<double> plainTorus(const std::vector<double> &x, int64_t n,
                               int64_t m) {
  std::vector<double> slopes(x.size(), 0);
  auto at = [&](int64_t i, int64_t j) {
    return static_cast<size_t>((i + n) % n * m + (j + 2 * m) % m);
  };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) {
      size_t a = at(i + 1, j), b = at(i, j - 2), c = at(i - 1, j + 1);
      slopes[a] += std::cos(x[a]) * x[b];
      slopes[b] += std::sin(x[a]);
      slopes[c] += 2 * x[c];
    }
  return slopes;
}

TEST(Remainders, OfATorusOfAnySizeHaveTheirGradient) {
  Kernel k = makeTorus();
  for (int threads : {1, 2}) {
    Device device = openDevice({.threads = threads});
    for (int64_t n : {1, 2, 3, 40})
      for (int64_t m : {2, 3, 4, 150}) {
        Array<double> x = device.array<double>({n, m}, grad),
                      y = device.array<double>({n, m}, grad);
        std::vector<double> values =
            randomValues(static_cast<size_t>(n * m), -1, 1);
        x.from_host(values);
        y.grad().fill(1);
        k(x, y);
        k.grad(x, y);
        std::vector<double> slopes = x.grad().to_host(), sums = y.to_host();
        std::vector<double> expected = plainTorus(values, n, m);
        for (size_t e = 0; e < slopes.size(); ++e)
          ASSERT_NEAR(slopes[e], expected[e], 1e-13) << n << " x " << m;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < m; ++j) {
            double z = values[size_t((i - 1 + n) % n * m + (j + 1) % m)];
            ASSERT_NEAR(sums[size_t(i * m + j)],
                        std::sin(values[size_t((i + 1) % n * m + j)]) *
                                values[size_t(i * m + (j - 2 + m) % m)] +
                            z * z,
                        1e-13);
          }
      }
  }
}

/// A ring of one element is its own neighbour on both sides.
TEST(Remainders, OfARingOfAnySizeHaveTheirGradient) {
  Device device = openDevice();
  Kernel k = kernel("ring", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    Index n = x.size();
    parallel(n, [&](Index i) {
      y(i) = x((i + 1) % n) * x((i - 1 + n) % n) * x((i - 1 + n) % n);
    });
  });
  for (int64_t n : {1, 2, 3, 4, 100}) {
    Array<double> x = device.array<double>({n}, grad),
                  y = device.array<double>({n}, grad);
    std::vector<double> v = randomValues(static_cast<size_t>(n), -1, 1);
    std::vector<double> expected(v.size(), 0);
    for (int64_t i = 0; i < n; ++i) {
      size_t a = size_t((i + 1) % n), b = size_t((i - 1 + n) % n);
      expected[a] += v[b] * v[b];
      expected[b] += 2 * v[a] * v[b];
    }
    x.from_host(v);
    y.grad().fill(1);
    k.grad(x, y);
    std::vector<double> slopes = x.grad().to_host();
    for (size_t e = 0; e < slopes.size(); ++e)
      ASSERT_NEAR(slopes[e], expected[e], 1e-13) << n;
  }
}

} // namespace
