/// Structs in arrays, in both layouts, and as values.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*", sample);

using namespace costate;
using namespace costate::test;

namespace particles {

struct State {
  Vec<double, 2> position, velocity;
};
COSTATE_STRUCT(State, position, velocity)

struct Particle {
  State state;
  Var<double> mass;
  Mat<double, 2, 2> strain;
};
COSTATE_STRUCT(Particle, state, mass, strain)

struct Material {
  Var<double> stiffness;
  Vec<double, 2> pull;
  Var<int> iterations;
  State start;
  Var<bool> damped;
};
COSTATE_STRUCT(Material, stiffness, pull, iterations, start, damped)

} // namespace particles

namespace {

using particles::Particle;

template <Layout L> Kernel step() {
  return kernel("step", [](ArrayRef<Particle, 1, L> p,
                           ArrayRef<Particle, 1, L> q, ArrayRef<int, 1> at) {
    parallel(p.size(), [&](Index i) {
      Particle one = p(i), other;
      other = one;
      FOR (t, 0, 3) {
        one.state.velocity -= 0.1 * one.strain * one.state.position / one.mass;
        one.state.position += 0.1 * one.state.velocity;
        one.strain(0, 1) *= one.mass;
        one.mass = one.mass + 0.1 * other.state.position[at(i)];
      }
      q(i) = one;
      q(i).mass += sin(p(i).state.velocity[at(i)]);
      q(i).state.velocity += other.state.velocity * p(i).strain(at(i), 1);
    });
  });
}

std::vector<Host<Particle>> randomParticles(size_t n) {
  std::vector<double> numbers = randomValues(n * 9, 0.5, 1.5);
  std::vector<Host<Particle>> values(n);
  std::memcpy(values.data(), numbers.data(), n * sizeof(Host<Particle>));
  return values;
}

template <Layout L> std::vector<double> gradientOfStep() {
  auto p = cpu().array<Particle>({3}, grad | dual, {.layout = L});
  auto q = cpu().array<Particle>({3}, grad | dual, {.layout = L});
  auto at = constant<int>({0, 1, 0});
  p.from_host(randomParticles(3));
  Kernel k = step<L>();
  EXPECT_TRUE(check_gradient(k, p, q, at));
  k(p, q, at);
  q.grad().from_host(randomParticles(3));
  k.grad(p, q, at);
  std::vector<double> all(54);
  auto results = q.to_host(), gradients = p.grad().to_host();
  std::memcpy(all.data(), results.data(), 27 * sizeof(double));
  std::memcpy(all.data() + 27, gradients.data(), 27 * sizeof(double));
  return all;
}

TEST(Struct, GradientsInBothLayouts) {
  std::vector<double> aos = gradientOfStep<AoS>(), soa = gradientOfStep<SoA>();
  for (size_t i = 0; i < aos.size(); ++i)
    EXPECT_NEAR(aos[i], soa[i], 1e-14);
}

TEST(Struct, ReadsAndStores) {
  Kernel k = kernel("swap", [](ArrayRef<Particle, 1> p) {
    Particle first = p(0);
    p(0) = p(1);
    p(1) = first;
    p(0).mass = 2.0 * p(0).mass;
  });
  auto p = cpu().array<Particle>({2});
  Host<Particle> one{{{1, 2}, {3, 4}}, 5, {{{6, 7}, {8, 9}}}};
  p.from_host({one, {}});
  k(p);
  k(p);
  Host<Particle> got = p.to_host()[0];
  EXPECT_EQ(got.state.velocity, (std::array<double, 2>{3, 4}));
  EXPECT_EQ(got.mass, 10);
  EXPECT_EQ(got.strain[1][0], 8);
  EXPECT_EQ(p.to_host()[1].mass, 0);
}

TEST(Struct, Messages) {
  Kernel k = step<AoS>();
  auto soa = cpu().array<Particle>({2}, none, {.layout = SoA});
  auto at = constant<int>({0, 0});
  expectError(ErrorCode::BadArgument,
              {"argument 1 (Particle array of rank 1)",
               "an array of Particle of shape (2) in SoA layout"},
              [&] { k(soa, soa, at); });
}

/// Also with members of several types.
TEST(Struct, IsAnArgument) {
  using particles::Material;
  Kernel k = kernel("pulled", [](ArrayRef<double, 1> x, Scalar<Material> m,
                                 Scalar<Mat<double, 2, 2>> rotation,
                                 ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Vec<double, 2> v = rotation * m.pull + x(i) * m.start.velocity;
      FOR (t, 0, m.iterations) {
        v = v * m.stiffness + m.start.position;
      }
      IF (m.damped) {
        v = 0.5 * v;
      }
      y(i) = v[0] * v[1];
    });
  });
  Host<Material> m{2.0, {1, -1}, 2, {{0.5, 0.25}, {3, 1}}, true};
  std::array<std::array<double, 2>, 2> rotation{{{0, 1}, {1, 0}}};
  Array<double> x = active<double>({0, 2}), y = active<double>({0, 0});
  k(x, m, rotation, y);
  y.grad().fill(1);
  k.grad(x, m, rotation, y);
  std::vector<double> values, slopes;
  for (double at : {0.0, 2.0}) {
    double a = 0.5 * (4 * (-1 + 3 * at) + 1.5), b = 0.5 * (4 * (1 + at) + 0.75);
    values.push_back(a * b);
    slopes.push_back(6 * b + 2 * a);
  }
  EXPECT_EQ(y.to_host(), values);
  EXPECT_EQ(x.grad().to_host(), slopes);
  EXPECT_TRUE(check_gradient(k, x, m, rotation, y).ok);
  expectError(ErrorCode::BadArgument,
              {"`pulled`", "argument 3 has 4 parts, but was given 1"},
              [&] { k(x, m, 1.0, y); });
}

} // namespace
