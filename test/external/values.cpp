// Vectors, matrices and structs of a kernel, by their public names.
#include <costate/costate.h>
#include <costate/syntax.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace costate;

namespace {

int failures = 0;

void expect(const char *what, double got, double expected) {
  if (std::abs(got - expected) <= 1e-12 * std::max(1.0, std::abs(expected)))
    return;
  std::printf("%s gives %.17g instead of %.17g\n", what, got, expected);
  ++failures;
}

/// A projectile in a wind that rotates, with a drag matrix.
void projectile() {
  Kernel fly =
      kernel("fly", [](ArrayRef<double, 1> start, ArrayRef<double, 0> reached,
                       Scalar<int> steps) {
        Vec<double, 3> p, v(start(0), start(1), start(2));
        Mat<double, 3, 3> drag = 0.5 * identity<double, 3>();
        drag(0, 1) = 0.25;
        const std::array<double, 3> gravity{0, 0, -10};
        FOR (t, 0, steps) {
          VecExpr<double, 3> force = gravity - drag * v;
          v += 0.01 * force;
          v[t % 3] += 0.001;
          p += 0.01 * v;
          IF (p.z() < 0) {
            v.z() = abs(v.z());
          }
        }
        reached() = norm_sqr(p) + dot(p, normalized(cross(p, v)));
      });
  Device device = Device::best();
  Array<double> start = device.array<double>({3}, grad),
                reached = device.array<double>({}, grad);
  start.from_host({3, 4, 5});
  GradientCheck check = check_gradient(fly, start, reached, 50);
  expect("gradient", check ? 1 : 0, 1);
}

/// Arrays of vectors, in both layouts.
template <Layout L> void cloth() {
  Kernel move = kernel("move", [](ArrayRef<Vec<float, 2>, 1, L> x,
                                  ArrayRef<Mat<float, 2, 2>, 1> m) {
    parallel(x.size(), [&](Index i) {
      x(i) = m(i) * x(i);
      x(i)[1] += 1.0;
    });
  });
  Device device = Device::best();
  auto x = device.array<Vec<float, 2>>({3}, grad | dual, {.layout = L});
  auto m = device.array<Mat<float, 2, 2>>({3});
  x.from_host({{1, 2}, {3, 4}, {5, 6}});
  m.fill({{{1, 1}, {0, 2}}});
  move(x, m);
  expect("x", x.to_host()[2][0], 11);
  expect("y", x.to_host()[2][1], 13);
}

struct Ball {
  Vec<double, 2> at, speed;
  Var<double> radius;
};
COSTATE_STRUCT(Ball, at, speed, radius)

struct Marble {
  Var<int> colour;
  Ball ball;
  Var<bool> lost;
};
COSTATE_STRUCT(Marble, colour, ball, lost)

/// Members of several types, and sums of vectors and structs.
void marbles() {
  Kernel count =
      kernel("count", [](ArrayRef<Marble, 1, SoA> m, ArrayRef<Ball, 0> all,
                         ArrayRef<double, 0> far) {
        all() = sum(m.size(), [&](Index i) { return m(i).ball; });
        VecExpr<double, 2> middle =
            sum(elements(m), [&](Index i) { return m(i).ball.at; });
        parallel(elements(m), [&](Index i) {
          Marble one = m(i);
          m(i).lost |= one.ball.at.x() > 1;
          m(i).colour += 2;
          far() += norm_sqr(one.ball.at - middle) * cast<double>(one.colour);
        });
      });
  Device device = Device::best();
  auto m = device.array<Marble>({2}, grad, {.layout = SoA});
  auto all = device.array<Ball>({}, grad);
  auto far = device.array<double>({}, grad);
  m.from_host(
      {{1, {{1, 2}, {0, 0}, 0.5}, false}, {3, {{3, 0}, {1, 1}, 0.25}, false}});
  count(m, all, far);
  expect("sum", all.to_host()[0].radius, 0.75);
  expect("colour", m.to_host()[1].colour, 5);
  expect("lost", m.to_host()[0].lost + 2 * m.to_host()[1].lost, 2);
  expect("far", far.to_host()[0], 9 + 3 * 5);
  far.grad().fill(1);
  count.grad(initial_state, m, all, far); // colours are 3 and 5 now
  expect("slope", m.grad().to_host()[0].ball.at[0], 2 * 5);
}

void balls() {
  Kernel roll = kernel("roll", [](ArrayRef<Ball, 1, SoA> b) {
    parallel(b.size(), [&](Index i) {
      Ball ball = b(i);
      IF (ball.at.x() > ball.radius) {
        ball.speed = -ball.speed;
      }
      ball.at += ball.speed;
      b(i) = ball;
    });
  });
  auto b = Device::best().array<Ball>({2}, none, {.layout = SoA});
  b.from_host({{{0, 0}, {1, 2}, 1}, {{2, 0}, {1, 2}, 1}});
  roll(b);
  expect("rolled", b.to_host()[0].at[1], 2);
  expect("bounced", b.to_host()[1].at[1], -2);
}

void decompositions() {
  Kernel k = kernel("decompose", [](ArrayRef<Mat<double, 3, 3>, 0> a,
                                    ArrayRef<double, 0> error) {
    auto [u, sigma, v] = svd(a());
    auto [r, s] = polar_decompose(a());
    auto [values, q] = sym_eig(s);
    error() = norm(u * diagonal(sigma) * transpose(v) - a()) +
              norm(r - u * transpose(v)) + abs(sum(values) - sum(sigma)) +
              norm(transpose(q) * q - identity<double, 3>());
  });
  Device device = Device::best();
  auto a = device.array<Mat<double, 3, 3>>({});
  auto error = device.array<double>({});
  a.fill({{{1, 2, 3}, {0, 4, 5}, {1, 0, 6}}});
  k(a, error);
  expect("decompositions", error.to_host()[0], 0);
}

} // namespace

int main() {
  balls();
  marbles();
  decompositions();
  projectile();
  cloth<AoS>();
  cloth<SoA>();
  return failures != 0;
}
