/// Arrays of vectors and matrices in both layouts.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

using Vec3 = Vec<double, 3>;
using Mat2 = Mat<double, 2, 2>;
using Three = std::array<double, 3>;

template <class C, size_t N> void randomise(Array<C> array, unsigned seed) {
  std::vector<double> numbers =
      randomValues(static_cast<size_t>(array.size()) * N, -1, 1, seed);
  std::vector<typename Array<C>::Host> values(
      static_cast<size_t>(array.size()));
  std::memcpy(values.data(), numbers.data(), numbers.size() * sizeof(double));
  array.from_host(values);
}

/// Springs around a ring, with a matrix for each particle.
template <Layout L> Kernel springs() {
  return kernel("springs", [](ArrayRef<Vec3, 1, L> x, ArrayRef<Mat2, 1, L> m,
                              ArrayRef<Vec3, 2, L> f, ArrayRef<int, 1> at) {
    parallel(x.size(), [&](Index i) {
      Index next = (i + 1) % x.size();
      VecExpr<double, 3> d = x(next) - x(i);
      VecExpr<double, 3> force = d * (1.0 - 0.3 / norm(d));
      f(0, i) += force;
      f(0, next) -= force;
      Vec<double, 2> v(x(i).x(), x(i)[at(i)]);
      v = m(i) * v * determinant(m(i)) + m(i)(1, at(i) / 2);
      f(1, i) = vec(v.x(), v.y(), x(i)[2]);
      f(1, i)[1] = m(i)(0, 1) * v.x();
    });
  });
}

template <Layout L> std::vector<double> gradientsOfSprings() {
  const int64_t n = 5;
  Device device = cpu();
  const ArrayOptions options{.layout = L};
  auto x = device.array<Vec3>({n}, grad | dual, options);
  auto m = device.array<Mat2>({n}, grad | dual, options);
  auto f = device.array<Vec3>({2, n}, grad | dual, options);
  auto at = constant<int>({0, 1, 2, 1, 0});
  randomise<Vec3, 3>(x, 1);
  randomise<Mat2, 4>(m, 2);
  Kernel k = springs<L>();
  EXPECT_TRUE(check_gradient(k, x, m, f, at));
  k(x, m, f, at);
  randomise<Vec3, 3>(f.grad(), 3);
  randomise<Vec3, 3>(x.dual(), 4);
  k.grad(x, m, f, at);
  std::vector<double> all;
  for (auto &array : {f.to_host(), x.grad().to_host()})
    for (const Three &element : array)
      all.insert(all.end(), element.begin(), element.end());
  for (const auto &element : m.grad().to_host())
    for (const auto &row : element)
      all.insert(all.end(), row.begin(), row.end());
  f.fill({});
  k.jvp(x, m, f, at);
  for (const Three &element : f.dual().to_host())
    all.insert(all.end(), element.begin(), element.end());
  return all;
}

TEST(CompositeArray, GradientsInBothLayouts) {
  std::vector<double> aos = gradientsOfSprings<AoS>();
  std::vector<double> soa = gradientsOfSprings<SoA>();
  ASSERT_EQ(aos.size(), soa.size());
  for (size_t i = 0; i < aos.size(); ++i)
    EXPECT_NEAR(aos[i], soa[i], 1e-14);
}

/// Underneath there is an ordinary array.
TEST(CompositeArray, Layouts) {
  for (Layout layout : {AoS, SoA}) {
    auto x =
        cpu().array<Vec3>({2, 2}, dual, {.directions = 2, .layout = layout});
    const std::vector<Three> values{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 1, 2}};
    x.from_host(values);
    EXPECT_EQ(x.to_host(), values);
    EXPECT_EQ(x.shape(), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(x.rank(), 2);
    EXPECT_EQ(x.size(), 4);
    EXPECT_EQ(x.size(1), 2);
    const AnyArray &numbers = x;
    std::vector<double> raw(12);
    numbers.read(raw.data(), 12 * sizeof(double));
    std::vector<double> aos{1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2};
    std::vector<double> soa{1, 4, 7, 0, 2, 5, 8, 1, 3, 6, 9, 2};
    EXPECT_EQ(raw, layout == AoS ? aos : soa);
    EXPECT_EQ(numbers.shape(), (layout == AoS ? std::vector<int64_t>{2, 2, 3}
                                              : std::vector<int64_t>{3, 2, 2}));
    EXPECT_EQ(x.dual().shape(), (std::vector<int64_t>{2, 2, 2}));
    std::vector<Three> tangents(8);
    tangents[5] = {1, 2, 3};
    x.dual().from_host(tangents);
    EXPECT_EQ(x.dual().to_host(), tangents);
    x.fill({1, 2, 4});
    EXPECT_EQ(x.to_host()[3], (Three{1, 2, 4}));
  }
}

TEST(CompositeArray, WrongArguments) {
  Kernel k = kernel("clear", [](ArrayRef<Vec3, 1> x) {
    parallel(x.size(), [&](Index i) { x(i) = Vec3(); });
  });
  auto soa = cpu().array<Vec3>({4}, none, {.layout = SoA});
  expectError(ErrorCode::BadArgument,
              {"argument 1 (Vec<f64, 3> array of rank 1)",
               "an array of Vec<f64, 3> of shape (4) in SoA layout"},
              [&] { k(soa); });
  auto pairs = cpu().array<double>({4, 2});
  expectError(ErrorCode::BadArgument, {"f64 array of rank 2 and shape (4, 2)"},
              [&] { k(pairs); });
  auto numbers = cpu().array<double>({4, 3});
  numbers.fill(1);
  k(numbers);
  EXPECT_EQ(numbers.to_host(), std::vector<double>(12, 0));
  expectError(
      ErrorCode::BadArgument,
      {"an array of Vec<f64, 3> of shape (4) has 4 elements", "host has 2"},
      [&] { soa.from_host({{1, 2, 3}, {4, 5, 6}}); });
  expectError(ErrorCode::MissingGradient,
              {"an array of Vec<f64, 3> of shape (4) has no gradient"},
              [&] { soa.grad(); });
  expectError(ErrorCode::BadArgument,
              {"cannot be used as an array of Vec<f64, 2>"},
              [&] { Array<Vec<double, 2>>(AnyArray(soa)); });
  expectError(ErrorCode::BadArgument,
              {"an array of Vec<f64, 3> of shape (-1) has a negative extent"},
              [&] { cpu().array<Vec3>({-1}); });
}

/// A recording copies what a launch overwrites, and names it.
TEST(CompositeArray, OnATape) {
  Kernel k = kernel("rotate", [](ArrayRef<Vec3, 1> x) {
    parallel(x.size(), [&](Index i) {
      VecExpr<double, 3> old = x(i);
      x(i) = cross(old, vec(1.0, 2.0, 3.0)) * norm_sqr(old);
    });
  });
  Kernel total =
      kernel("total", [](ArrayRef<Vec3, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) { s() += sum(x(i)); });
      });
  auto x = cpu().array<Vec3>({1}, grad);
  auto s = cpu().array<double>({}, grad);
  auto gradient = [&](const Three &start) {
    x.fill(start);
    s.fill(0);
    x.grad().fill({});
    Tape tape;
    {
      auto recording = tape.record();
      k(x);
      k(x);
      total(x, s);
    }
    tape.backward(s);
    EXPECT_NE(tape.report().copies.at(0).array.find("Vec<f64, 3> of shape (1)"),
              std::string::npos);
    return std::pair(s.to_host()[0], x.grad().to_host()[0]);
  };
  Three start{0.3, -0.2, 0.5};
  Three slope = gradient(start).second;
  for (size_t k = 0; k < 3; ++k) {
    Three up = start, down = start;
    up[k] += 1e-6;
    down[k] -= 1e-6;
    double difference = (gradient(up).first - gradient(down).first) / 2e-6;
    EXPECT_NEAR(slope[k], difference,
                1e-8 * std::max(1.0, std::abs(difference)));
  }
}

} // namespace
