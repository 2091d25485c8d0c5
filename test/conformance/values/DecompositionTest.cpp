/// Decompositions of 10,000 matrices at a time: random ones, with equal
/// singular values or eigenvalues, and with nearly equal ones.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*.Derivatives*", repeats);
COSTATE_LABEL("*.SecondOrder", repeats);
COSTATE_LABEL("Decomposition.Values", slow);
COSTATE_LABEL("Decomposition.OfIntegersAndOfAnySize", slow);
COSTATE_LABEL("Decomposition.FiniteEverywhere", slow);

using namespace costate;
using namespace costate::test;

namespace {

constexpr int64_t count = 10000;

template <int N> using Matrix = Mat<double, N, N>;
template <int N> using Host = typename Array<Matrix<N>>::Host;
template <int N> using Values = MatExpr<double, N, N>;

/// A sum of all components with weights that no symmetry cancels.
template <detail::Tensor A> Expr<double> weighed(const A &a, double phase) {
  Expr<double> sum = 0.0;
  int k = 0;
  for (detail::Handle one : a.components(Loc()))
    sum = sum + std::sin(phase + 1.7 * k++) * Expr<double>(one);
  return sum;
}

/// Functions of single vectors that do not depend on their signs.
template <int N>
Expr<double> ofVectors(const Values<N> &a, const Values<N> &symmetric) {
  auto [u, sigma, v] = svd(a);
  auto [lambda, q] = sym_eig(symmetric);
  Expr<double> sum = weighed(sigma, 0.3) + weighed(lambda, 0.9);
  for (int k = 0; k < N; ++k)
    sum = sum + weighed(outer(column(u, k), column(v, k)), 2.0 * k) +
          weighed(outer(column(u, k), column(u, k)), 2.0 * k + 0.4) +
          weighed(outer(column(q, k), column(q, k)), 2.0 * k + 0.8);
  return sum;
}

/// Functions that are smooth where values are equal.
template <int N>
Expr<double> ofAll(const Values<N> &a, const Values<N> &symmetric) {
  auto [u, sigma, v] = svd(a);
  auto [r, s] = polar_decompose(a);
  auto [lambda, q] = sym_eig(symmetric);
  return weighed(r, 0.3) + weighed(s, 1.1) + sum(sigma) +
         0.3 * sum(sigma * sigma * sigma) + sum(exp(lambda)) +
         0.5 * norm_sqr(lambda) + weighed(s * r * s, 2.0);
}

/// The same with what is put together again.
template <int N>
Expr<double> ofSums(const Values<N> &a, const Values<N> &symmetric) {
  auto [u, sigma, v] = svd(a);
  auto [lambda, q] = sym_eig(symmetric);
  return ofAll<N>(a, symmetric) + weighed(u * transpose(v), 0.2) +
         weighed(u * diagonal(sigma) * transpose(v), 0.1) +
         weighed(q * diagonal(lambda * lambda) * transpose(q), 0.7);
}

template <int N, class F> Kernel kernelOf(F f) {
  return kernel("decompose",
                [f](ArrayRef<Matrix<N>, 1> x, ArrayRef<double, 1> y) {
                  parallel(x.size(), [&](Index i) {
                    Values<N> a = x(i);
                    y(i) = f(a, Values<N>(a + transpose(a)));
                  });
                });
}

template <int N> double determinantOf(const Host<N> &m) {
  double sum = 0;
  for (size_t k = 0; k < N; ++k) {
    const auto &next = m[1], &last = m[N - 1];
    size_t i = (k + 1) % N, j = (k + 2) % N;
    sum += N == 2 ? (k ? -1 : 1) * m[0][k] * next[i]
                  : m[0][k] * (next[i] * last[j] - next[j] * last[i]);
  }
  return sum;
}

/// A random rotation times diagonal(values) times another one, or its inverse
/// if the result is to be symmetric.
template <int N>
Host<N> made(const std::array<double, N> &values, bool symmetric,
             std::mt19937 &engine) {
  std::normal_distribution<double> normal;
  auto rotation = [&] {
    Host<N> m;
    for (int i = 0; i < N; ++i) {
      for (double &x : m[size_t(i)])
        x = normal(engine);
      for (int j = 0; j <= i; ++j) {
        double product = 0;
        for (int k = 0; k < N; ++k)
          product += m[size_t(i)][size_t(k)] * m[size_t(j)][size_t(k)];
        for (int k = 0; k < N; ++k)
          m[size_t(i)][size_t(k)] =
              j < i
                  ? m[size_t(i)][size_t(k)] - product * m[size_t(j)][size_t(k)]
                  : m[size_t(i)][size_t(k)] / std::sqrt(product);
      }
    }
    if (determinantOf<N>(m) < 0)
      for (double &x : m[0])
        x = -x;
    return m;
  };
  Host<N> u = rotation(), v = symmetric ? u : rotation(), a{};
  for (size_t i = 0; i < N; ++i)
    for (size_t j = 0; j < N; ++j)
      for (size_t k = 0; k < N; ++k)
        a[i][j] += u[k][i] * values[k] * v[k][j];
  return a;
}

/// Two values that differ by `gap`; in every third matrix of three rows, three.
/// Every second matrix is symmetric, so that its eigenvalues do so as well.
template <int N, class Gap>
std::vector<Host<N>> clustered(unsigned seed, const Gap &gap) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  std::vector<Host<N>> matrices;
  for (int64_t i = 0; i < count; ++i) {
    std::array<double, N> values;
    values.fill(uniform(engine));
    values[N - 1] += gap(engine);
    if (N == 3)
      values[0] += i % 3 ? uniform(engine) : -gap(engine);
    matrices.push_back(made<N>(values, i % 2, engine));
    if (i % 7 == 0 && values[N - 1] == values[N - 2]) {
      matrices.back() = {};
      for (size_t k = 0; k < N; ++k)
        matrices.back()[k][k] = values[N - 1];
    }
  }
  return matrices;
}

template <int N> std::vector<Host<N>> randomMatrices(unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Host<N>> matrices(count);
  for (Host<N> &m : matrices)
    for (auto &row : m)
      for (double &x : row)
        x = uniform(engine);
  return matrices;
}

/// Reverse and forward mode along a random direction against differences. The
/// share of matrices that may miss `tolerance` is `outliers`.
template <int N>
void expectDerivatives(const Kernel &k, const std::vector<Host<N>> &at,
                       double tolerance, double outliers = 0) {
  Device device = cpu();
  auto x = device.array<Matrix<N>>({count}, grad | dual);
  auto y = device.array<double>({count}, grad | dual);
  std::vector<Host<N>> direction = randomMatrices<N>(77);
  auto valuesAt = [&](double shift) {
    std::vector<Host<N>> moved = at;
    for (size_t m = 0; m < moved.size(); ++m)
      for (size_t i = 0; i < N; ++i)
        for (size_t j = 0; j < N; ++j)
          moved[m][i][j] += shift * direction[m][i][j];
    x.from_host(moved);
    k(x, y);
    return y.to_host();
  };
  const double h = 2e-4;
  std::vector<double> p1 = valuesAt(h), m1 = valuesAt(-h), p2 = valuesAt(2 * h),
                      m2 = valuesAt(-2 * h);
  x.from_host(at);
  x.dual().from_host(direction);
  y.grad().fill(1);
  k.grad(x, y);
  k.jvp(x, y);
  std::vector<Host<N>> slope = x.grad().to_host();
  std::vector<double> forward = y.dual().to_host();
  int64_t misses = 0, infinite = 0;
  double worst = 0, modes = 0;
  for (size_t m = 0; m < at.size(); ++m) {
    double reverse = 0, size = 1;
    for (size_t i = 0; i < N; ++i)
      for (size_t j = 0; j < N; ++j) {
        reverse += slope[m][i][j] * direction[m][i][j];
        size = std::max(size, std::abs(slope[m][i][j]));
      }
    double difference = (8 * (p1[m] - m1[m]) - (p2[m] - m2[m])) / (12 * h);
    double error = std::abs(reverse - difference) / size;
    infinite += !std::isfinite(reverse) || !std::isfinite(forward[m]);
    misses += !(error <= tolerance);
    modes = std::max(modes, std::abs(reverse - forward[m]) / size);
    if (error <= tolerance)
      worst = std::max(worst, error);
  }
  EXPECT_EQ(infinite, 0);
  EXPECT_LE(double(misses), outliers * double(count))
      << "worst of the others: " << worst;
  EXPECT_LE(modes, 1e-7);
}

template <int N> void expectAll() {
  expectDerivatives<N>(kernelOf<N>(ofVectors<N>), randomMatrices<N>(1), 1e-6,
                       0.001);
  expectDerivatives<N>(kernelOf<N>(ofAll<N>), randomMatrices<N>(2), 1e-6);
  Kernel all = kernelOf<N>(ofAll<N>), sums = kernelOf<N>(ofSums<N>);
  auto equal = clustered<N>(3, [](auto &) { return 0.0; });
  expectDerivatives<N>(all, equal, 5e-7);
  expectDerivatives<N>(sums, equal, 1e-6);
  auto near = clustered<N>(4, [](auto &engine) {
    return std::pow(10, std::uniform_real_distribution<double>(-7, -2)(engine));
  });
  expectDerivatives<N>(all, near, 1e-8);
  expectDerivatives<N>(sums, near, 1e-6);
}

TEST(Decomposition, DerivativesOfTwoRows) { expectAll<2>(); }
TEST(Decomposition, DerivativesOfThreeRows) { expectAll<3>(); }

/// How far products are from the matrix, factors from rotations, and values
/// from their order; the largest of all matrices.
template <class T, int N> double errorsOf(const std::vector<Host<N>> &at) {
  using M = Mat<T, N, N>;
  Kernel k = kernel("errors", [](ArrayRef<M, 1> x, ArrayRef<double, 0> worst) {
    parallel(x.size(), [&](Index i) {
      MatExpr<T, N, N> a = x(i), b = a + transpose(a);
      auto unit = identity<T, N>();
      auto [u, sigma, v] = svd(a);
      auto [r, s] = polar_decompose(a);
      auto [lambda, q] = sym_eig(b);
      Expr<T> scale = select(sigma[0] > T(0), sigma[0], T(1));
      Expr<T> wrong = norm((u * diagonal(sigma) * transpose(v) - a) / scale) +
                      norm((r * s - a) / scale) +
                      norm((q * diagonal(lambda) * transpose(q) - b) / scale);
      for (const auto &rotation : {u, v, r, q})
        wrong = wrong + norm(transpose(rotation) * rotation - unit) +
                abs(determinant(rotation) - T(1));
      for (int j = 1; j < N; ++j)
        wrong = wrong + max(lambda[j - 1] - lambda[j], T(0)) / scale +
                max(abs(sigma[j]) - sigma[j - 1], T(0)) / scale;
      atomic_max(worst(), cast<double>(select(wrong == wrong, wrong, T(1e9))));
    });
  });
  auto x = cpu().array<M>({int64_t(at.size())});
  std::vector<typename Array<M>::Host> values(at.size());
  for (size_t m = 0; m < at.size(); ++m)
    for (size_t i = 0; i < N; ++i)
      for (size_t j = 0; j < N; ++j)
        values[m][i][j] = T(at[m][i][j]);
  x.from_host(values);
  auto worst = cpu().array<double>({});
  k(x, worst);
  return worst.to_host()[0];
}

/// Also of rank 0, 1 and 2, and of mixed sizes.
template <int N> std::vector<Host<N>> degenerate() {
  std::vector<Host<N>> matrices(1);
  std::mt19937 engine(8);
  for (const Host<N> &m : randomMatrices<N>(9)) {
    Host<N> scaled = m, product{}, single{};
    for (size_t i = 0; i < N; ++i)
      for (size_t j = 0; j < N; ++j) {
        scaled[i][j] *= std::pow(10, int(engine() % 9) - 6);
        product[i][j] = m[i][0] * m[0][j];
        single[i][j] = engine() % 4 ? 0 : m[i][j];
      }
    matrices.insert(matrices.end(), {scaled, product, single});
  }
  return matrices;
}

TEST(Decomposition, Values) {
  auto none = [](auto &) { return 0.0; };
  for (const auto &set :
       {randomMatrices<2>(1), clustered<2>(3, none), degenerate<2>()}) {
    EXPECT_LE((errorsOf<double, 2>(set)), 1e-14);
    EXPECT_LE((errorsOf<float, 2>(set)), 3e-5);
  }
  for (const auto &set :
       {randomMatrices<3>(1), clustered<3>(3, none), degenerate<3>()}) {
    EXPECT_LE((errorsOf<double, 3>(set)), 4e-14);
    EXPECT_LE((errorsOf<float, 3>(set)), 3e-5);
  }
}

/// Of small integers, times `factor`: most sizes of ranks and zeros.
std::vector<Host<3>> integers(double factor) {
  std::vector<Host<3>> matrices(20000);
  std::mt19937 engine(4);
  auto digit = [&] { return int(engine() % 5) - 2; };
  for (size_t m = 0; m < matrices.size(); ++m) {
    std::array<int, 3> u{digit(), digit(), digit()}, v{1, digit(), digit()};
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        matrices[m][i][j] = factor * (m % 2 ? digit() : u[i] * v[j]);
  }
  return matrices;
}

TEST(Decomposition, OfIntegersAndOfAnySize) {
  for (double factor : {1.0, 0x1p-60, 0x1p60, 1e-19, 1e-34, 1e36}) {
    EXPECT_LE((errorsOf<double, 3>(integers(factor))), 4e-14) << factor;
    EXPECT_LE((errorsOf<float, 3>(integers(factor))), 3e-5) << factor;
  }
}

template <class T> Kernel directions() {
  using M = Mat<T, 3, 3>;
  return kernel("directions", [](ArrayRef<M, 1> x, ArrayRef<T, 0> y) {
    M a = x(0);
    auto [u, sigma, v] = svd(a);
    auto [r, s] = polar_decompose(a);
    auto [lambda, q] = sym_eig(a);
    y() = (u * transpose(v))(0, 1) + outer(column(u, 0), column(v, 1))(1, 2) +
          sigma[1] / sigma[0] + r(1, 2) + s(0, 1) / sigma[0] +
          lambda[0] / lambda[2] + outer(column(q, 1), column(q, 2))(0, 1);
  });
}

/// Of functions of directions: the gradient, and the product of the Hessian
/// with the matrix itself, times the size of the matrix.
template <class T>
std::vector<Host<3>> derivativesAt(double factor, const Kernel &k) {
  using M = Mat<T, 3, 3>;
  auto x = cpu().array<M>({1}, grad | dual);
  auto y = cpu().array<T>({}, grad | dual);
  typename Array<M>::Host at;
  for (size_t i = 0; i < 9; ++i)
    at[i / 3][i % 3] = T(factor * std::sin(3.0 * double(i) + 1));
  x.fill(at);
  x.dual().fill(at);
  y.grad().fill(1);
  k.gradient().jvp(x, y);
  std::vector<Host<3>> derivatives(2);
  auto gradient = x.grad().to_host()[0], product = x.grad().dual().to_host()[0];
  for (size_t i = 0; i < 9; ++i) {
    derivatives[0][i / 3][i % 3] = double(gradient[i / 3][i % 3]) * factor;
    derivatives[1][i / 3][i % 3] = double(product[i / 3][i % 3]) * factor;
  }
  return derivatives;
}

template <class T>
void expectAnySize(const Kernel &k, const std::vector<double> &factors,
                   const std::vector<Host<3>> &want, double tolerance) {
  for (double factor : factors) {
    auto got = derivativesAt<T>(factor, k);
    for (size_t i = 0; i < 9; ++i) {
      double slope = want[0][i / 3][i % 3];
      EXPECT_NEAR(got[0][i / 3][i % 3], slope, tolerance) << factor;
      EXPECT_NEAR(got[1][i / 3][i % 3], -slope, 10 * tolerance) << factor;
    }
  }
}

TEST(Decomposition, DerivativesOfAnySize) {
  Kernel inF64 = directions<double>(), inF32 = directions<float>();
  auto want = derivativesAt<double>(1, inF64);
  expectAnySize<double>(inF64, {1.0, 0x1p-400, 0x1p400}, want, 1e-11);
  expectAnySize<float>(inF32, {1.0, 0x1p-60, 0x1p60}, want, 1e-3);
}

/// Second derivatives against differences of gradients.
void expectSecondOrder(const Kernel &k, const std::array<double, 3> &values,
                       bool symmetric, double tolerance) {
  std::mt19937 engine(1);
  auto x = cpu().array<Matrix<3>>({1}, grad | dual);
  auto y = cpu().array<double>({1}, grad | dual);
  const Host<3> at = made<3>(values, symmetric, engine),
                along = randomMatrices<3>(5)[0];
  auto gradient = [&](double shift) {
    Host<3> moved = at;
    for (size_t i = 0; i < 9; ++i)
      moved[i / 3][i % 3] += shift * along[i / 3][i % 3];
    x.fill(moved);
    x.grad().fill({});
    y.grad().fill(1);
    k.grad(x, y);
    return x.grad().to_host()[0];
  };
  const double h = 1e-5;
  Host<3> after = gradient(h), before = gradient(-h);
  gradient(0);
  x.dual().fill(along);
  y.grad().fill(1);
  k.gradient().jvp(x, y);
  expectError(ErrorCode::NotDifferentiable,
              {"no derivative of order 3", "`svd`", "DecompositionTest.cpp"},
              [&] { k.gradient().tangent().jvp(x, y); });
  Host<3> product = x.grad().dual().to_host()[0];
  for (size_t i = 0; i < 9; ++i) {
    double want = (after[i / 3][i % 3] - before[i / 3][i % 3]) / (2 * h);
    EXPECT_NEAR(product[i / 3][i % 3], want,
                tolerance * std::max(1.0, std::abs(want)));
  }
}

TEST(Decomposition, SecondOrder) {
  Kernel all = kernelOf<3>([](const Values<3> &a, const Values<3> &symmetric) {
    return ofVectors<3>(a, symmetric) + ofAll<3>(a, symmetric);
  });
  Kernel sums = kernelOf<3>(ofSums<3>);
  expectSecondOrder(all, {2, 1.2, 0.4}, false, 2e-5);
  for (std::array<double, 3> equal :
       {std::array<double, 3>{1.2, 1.2, 0.4}, {2, 1.2, 1.2}, {1.2, 1.2, 1.2}}) {
    expectSecondOrder(sums, equal, false, 1e-3);
    expectSecondOrder(sums, equal, true, 1e-3);
  }
}

/// At 0 nothing is unique, and everything is finite.
TEST(Decomposition, FiniteEverywhere) {
  Kernel k = kernelOf<3>(ofVectors<3>), all = kernelOf<3>(ofAll<3>);
  std::vector<Host<3>> at = degenerate<3>();
  auto x = cpu().array<Matrix<3>>({int64_t(at.size())}, grad | dual);
  auto y = cpu().array<double>({int64_t(at.size())}, grad | dual);
  x.from_host(at);
  x.dual().fill({{{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}});
  for (const Kernel &each : {k, all}) {
    y.grad().fill(1);
    x.grad().fill({});
    each.jvp(x, y);
    each.grad(x, y);
    std::vector<double> values = y.to_host(), tangents = y.dual().to_host();
    for (size_t m = 0; m < at.size(); ++m)
      EXPECT_TRUE(std::isfinite(tangents[m]) || !std::isfinite(values[m]));
    std::vector<Host<3>> gradients = x.grad().to_host();
    for (size_t i = 0; i < 9 * at.size(); ++i)
      EXPECT_TRUE(std::isfinite(gradients[i / 9][i / 3 % 3][i % 3]) ||
                  !std::isfinite(values[i / 9]));
  }
}

} // namespace
