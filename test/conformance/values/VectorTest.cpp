/// Vectors, matrices and quaternions: values, and derivatives in all modes.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("Matrix.SecondOrder", slow);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using I = ArrayRef<int, 1>;

/// Appends results to an array.
class Results {
public:
  explicit Results(X y) : y(y) {}
  void add(const Expr<double> &value) { y(count++) = value; }
  template <detail::Tensor A> void add(const A &a) {
    for (detail::Handle one : a.components(Loc()))
      add(Expr<double>(one));
  }
  template <class A, class... B> void all(const A &first, const B &...others) {
    add(first);
    (add(others), ...);
  }

private:
  X y;
  int count = 0;
};

Array<double> results(size_t count) {
  return active(std::vector<double>(count, 0));
}

template <int M, int N> MatExpr<double, M, N> matrixAt(X x, int start) {
  Mat<double, M, N> m;
  for (int k = 0; k < M * N; ++k)
    m(k / N, k % N) = x(start + k);
  return m;
}

TEST(Vector, Values) {
  Kernel k = kernel("values", [](X x, X y) {
    Vec<double, 3> a(x(0), x(1), x(2)), b = a * 2.0 + vec(1.0, 0.0, -1.0);
    Results to(y);
    to.all(b, a * b, 1.0 - a / 2, dot(a, b), cross(a, b), norm_sqr(a), norm(b),
           normalized(a));
    to.all(sum(a), min_component(a), max_component(b), abs(-a), max(a, 2.0));
    a += b;
    a.y() = 7;
    a[2] -= 1;
    to.all(a, a.x(), select(a.x() > 100.0, a, b), cast<double>(a > b * 1.3));
    to.add(select(all(a == a) & ~any(a != a), 1.0, 0.0));
  });
  auto x = constant<double>({1, 2, 3}), y = results(44);
  k(x, y);
  const double r = std::sqrt(14);
  EXPECT_EQ(y.to_host(),
            (std::vector<double>{3,     4,     5,     3,    8,
                                 15,    0.5,   0,     -0.5, 26,
                                 -2,    4,     -2,    14,   std::sqrt(50),
                                 1 / r, 2 / r, 3 / r, 6,    1,
                                 5,     1,     2,     3,    2,
                                 2,     3,     4,     7,    7,
                                 4,     3,     4,     5,    1,
                                 1,     1,     1,     0,    0,
                                 0,     0,     0,     0}));
}

/// Variables, in loops and branches; components that only the run knows.
TEST(Vector, VariablesAndComponents) {
  Kernel k = kernel("walk", [](X x, I at, X y) {
    parallel(at.size(), [&](Index i) {
      Vec<double, 3> p(x(3 * i), x(3 * i + 1), x(3 * i + 2)), v(0.1), start = p;
      Mat<double, 2, 3> m;
      FOR (t, 0, at(i) + 2) {
        v += 0.1 * cross(p, vec(1.0, 2.0, 3.0)) - p * v;
        IF (p.z() > 0.2) {
          p += 0.3 * v;
        }
        ELSE { p = -p * p + start; }
        p[at(i)] *= 1.5;
        v[t] = v[t + 1] + p[2];
        m(t, at(i)) += p[at(i)] * v[2 - t];
        m(1, t) = m(0, at(i));
      }
      WHILE (norm(p) > 1) {
        p /= 1.0 + norm_sqr(p);
      }
      Vec<double, 2> last = m * p;
      y(2 * i) = last.x() + p[at(i)];
      y(2 * i + 1) = last.y() * m(0, 2) - v[at(i)];
    });
  });
  auto x = active(randomValues(12, -1, 1));
  auto at = constant<int>({0, 1, 2, 3});
  auto y = results(8);
  expectGradients({x}, {y}, k, x, at, y);
}

Kernel matrices() {
  return kernel("matrices", [](X x, X y) {
    MatExpr<double, 3, 3> a =
        matrixAt<3, 3>(x, 0) + 2.0 * identity<double, 3>();
    MatExpr<double, 3, 2> b = matrixAt<3, 2>(x, 9);
    MatExpr<double, 2, 2> c = matrixAt<2, 2>(x, 15) + identity<double, 2>();
    MatExpr<double, 4, 4> d = matrixAt<4, 4>(x, 0);
    Vec<double, 3> v(x(1), x(5), x(7));
    Results to(y);
    to.all(a * b * c, a * v, transpose(b) * a, outer(v, v), trace(a), norm(b));
    to.all(determinant(a), determinant(c), determinant(d), inverse(a),
           inverse(c), inverse(d));
    to.all(solve(a, b), solve(a, v),
           solve(d, transpose(from_rows(row(d, 0), row(d, 2)))));
    to.all(hadamard(a, from_columns(column(b, 0), v, normalized(v))),
           diagonal(v) / 2.0 - a);
  });
}

TEST(Matrix, Gradients) {
  auto x = active(randomValues(19, -1, 1, 5)), y = results(111);
  expectGradients({x}, {y}, matrices(), x, y);
}

/// Inverses and solutions against products; a permutation needs pivots.
TEST(Matrix, InverseAndSolve) {
  Kernel k = kernel("inverses", [](X x, X y) {
    Results to(y);
    MatExpr<double, 3, 3> a = matrixAt<3, 3>(x, 0);
    MatExpr<double, 4, 4> d = matrixAt<4, 4>(x, 0);
    MatExpr<double, 5, 5> e = matrixAt<5, 5>(x, 16);
    Vec<double, 5> v(1.0, 2.0, 3.0, 4.0, 5.0);
    to.all(norm(a * inverse(a) - identity<double, 3>()),
           norm(inverse(d) * d - identity<double, 4>()),
           norm(e * solve(e, v) - v), norm(inverse(e) * v - solve(e, v)),
           determinant(a) * determinant(inverse(a)) - 1.0,
           determinant(d) * determinant(inverse(d)) - 1.0,
           determinant(e) - 24.0);
  });
  std::vector<double> values = randomValues(16, -1, 1, 3);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j)
      values.push_back(j == (i + 2) % 5 ? (i ? i : 1) : 0);
  auto x = constant(values);
  auto y = results(7);
  k(x, y);
  for (double error : y.to_host())
    EXPECT_NEAR(error, 0, 1e-13);
}

/// The derivative of a determinant is the adjugate, of singular matrices too.
TEST(Matrix, DeterminantOfSingular) {
  Kernel k = kernel("determinant",
                    [](X x, X y) { y(0) = determinant(matrixAt<4, 4>(x, 0)); });
  std::vector<double> values(16), expected(16);
  values[3] = values[4] = 2;
  values[14] = 5; // row 2 and column 1 are empty
  expected[9] = 2 * 2 * 5;
  auto x = active(values), y = results(1);
  expectGradients({x}, {y}, k, x, y);
  y.grad().fill(1);
  x.grad().fill(0);
  k.grad(x, y);
  for (size_t i = 0; i < 16; ++i)
    EXPECT_EQ(std::abs(x.grad().to_host()[i]), expected[i]);
}

/// Second derivatives against differences of gradients.
TEST(Matrix, SecondOrder) {
  Kernel k = matrices();
  auto x = active(randomValues(19, -1, 1, 5)), y = results(111);
  std::vector<double> at = x.to_host(), along = randomValues(19, -1, 1, 6);
  auto gradient = [&](double shift) {
    std::vector<double> moved = at;
    for (size_t i = 0; i < at.size(); ++i)
      moved[i] += shift * along[i];
    x.from_host(moved);
    x.grad().fill(0);
    y.grad().from_host(randomValues(111, 0.5, 1.5));
    k.grad(x, y);
    return x.grad().to_host();
  };
  const double h = 1e-5;
  std::vector<double> after = gradient(h), before = gradient(-h);
  gradient(0);
  x.dual().from_host(along);
  y.grad().from_host(randomValues(111, 0.5, 1.5));
  y.grad().dual().fill(0);
  x.grad().dual().fill(0);
  k.gradient().jvp(x, y);
  std::vector<double> product = x.grad().dual().to_host();
  for (size_t i = 0; i < at.size(); ++i) {
    double difference = (after[i] - before[i]) / (2 * h);
    EXPECT_NEAR(product[i], difference,
                1e-5 * std::max(1.0, std::abs(difference)));
  }
}

TEST(Vector, NormHasNoSlopeAtZero) {
  Kernel k = kernel(
      "norm", [](X x, X y) { y(0) = norm(Vec<double, 3>(x(0), x(1), x(2))); });
  auto x = active<double>({0, 0, 0}), y = results(1);
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host(), std::vector<double>(3, 0));
  x.dual().fill(1);
  k.jvp(x, y);
  EXPECT_EQ(y.dual().to_host()[0], 0);
}

/// With `errors`, what ought to be 0; else the values.
Kernel rotations(bool errors) {
  return kernel("rotations", [errors](X x, X y) {
    Vec<double, 3> r(x(0), x(1), x(2)), v(x(3), x(4), x(5));
    auto q = quaternion::from_rotation_vector(r);
    auto p = quaternion::from_axis_angle(normalized(v), x(6));
    auto both = quaternion::multiply(q, p);
    VecExpr<double, 3> moved =
        quaternion::rotate(q, quaternion::rotate(p, v + 1.0));
    Results to(y);
    if (!errors)
      return to.all(q, p, both, moved, quaternion::to_matrix(both));
    to.all(norm(q) - 1.0, norm(moved - quaternion::rotate(both, v + 1.0)),
           norm(quaternion::to_matrix(both) * (v + 1.0) - moved),
           norm(quaternion::multiply(quaternion::conjugate(q), q) -
                quaternion::identity<double>()));
  });
}

TEST(Quaternion, GradientsAndRotations) {
  for (double scale : {1.0, 0.05, 1e-3, 0.0}) {
    std::vector<double> values = randomValues(7, -1, 1, 9);
    for (size_t i = 0; i < 3; ++i)
      values[i] *= scale;
    auto x = active(values), y = results(24), z = results(4);
    expectGradients({x}, {y}, rotations(false), x, y);
    rotations(true)(x, z);
    for (double error : z.to_host())
      EXPECT_NEAR(error, 0, 1e-14);
  }
}

TEST(Vector, ComponentsThatDoNotExist) {
  int line = __LINE__ + 3;
  auto body = [](X x) {
    Vec<double, 3> v(x(0));
    v[3] = 1;
    x(0) = v[0];
  };
  expectError(ErrorCode::BadKernel,
              {here(__FILE__, line), "no component 3 of 3"},
              [&] { kernel("outside", body); });
}

/// Elements are read where the user passes them to a function.
TEST(Vector, PlacesAreThoseOfTheUser) {
  int line = __LINE__ + 4;
  auto body = [](ArrayRef<double, 2> x, ArrayRef<double, 0> y) {
    parallel(x.size(), [&](Index i) {
      VecExpr<double, 2> v(1.0, x(i, 1));
      y() += norm(vec(v.x(), x(i, 2)));
    });
  };
  Kernel k = kernel("places", body, {.debug = true});
  Array<double> x = cpu().array<double>({1, 2}), y = cpu().array<double>({});
  expectError(ErrorCode::OutOfRange, {here(__FILE__, line)}, [&] {
    k(x, y);
    y.to_host();
  });
}

} // namespace
