/// Arrays of structs with members of several types: an array for each type
/// underneath, one array to the user.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*.InAGraph", waits);

using namespace costate;
using namespace costate::test;

namespace cells {

struct State {
  Vec<double, 2> position, velocity;
  Var<bool> fixed;
};
COSTATE_STRUCT(State, position, velocity, fixed)

struct Particle {
  Var<int> kind;
  State state;
  Var<float> charge;
  Var<double> mass;
  Vec<int, 2> cell;
  Var<bool> alive;
};
COSTATE_STRUCT(Particle, kind, state, charge, mass, cell, alive)

struct Tag {
  Var<int64_t> id;
  Var<bool> seen;
};
COSTATE_STRUCT(Tag, id, seen)

struct Half {
  Var<f16> value;
  Var<int> weight;
};
COSTATE_STRUCT(Half, value, weight)

struct Wind {
  Vec<double, 2> force;
  Var<int> iterations;
};
COSTATE_STRUCT(Wind, force, iterations)

} // namespace cells

namespace {

using cells::Particle;
using cells::Tag;

Host<Particle> particle(int seed) {
  std::vector<double> v = randomValues(6, 0.5, 1.5, unsigned(seed + 1));
  return {.kind = seed % 3,
          .state = {{v[0], v[1]}, {v[2], v[3]}, seed % 4 == 3},
          .charge = float(v[4]),
          .mass = v[5],
          .cell = {seed, -seed},
          .alive = seed % 5 != 1};
}

std::vector<Host<Particle>> particles(int n, int first = 0) {
  std::vector<Host<Particle>> all;
  for (int i = 0; i < n; ++i)
    all.push_back(particle(first + i));
  return all;
}

bool operator==(const Host<Particle> &a, const Host<Particle> &b) {
  return a.kind == b.kind && a.state.position == b.state.position &&
         a.state.velocity == b.state.velocity &&
         a.state.fixed == b.state.fixed && a.charge == b.charge &&
         a.mass == b.mass && a.cell == b.cell && a.alive == b.alive;
}

void expectEqual(const std::vector<Host<Particle>> &a,
                 const std::vector<Host<Particle>> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(::operator==(a[i], b[i])) << i;
}

TEST(StructArray, OnTheHost) {
  for (Layout layout : {AoS, SoA}) {
    auto p = cpu().array<Particle>({2, 3}, grad | dual, {.layout = layout});
    EXPECT_EQ(p.shape(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(p.rank(), 2);
    EXPECT_EQ(p.size(), 6);
    EXPECT_EQ(p.size(1), 3);
    EXPECT_EQ(p.layout(), layout);
    EXPECT_TRUE(p.has_grad() && p.has_dual());
    expectEqual(p.to_host(), std::vector<Host<Particle>>(6));
    p.from_host(particles(6));
    expectEqual(p.to_host(), particles(6));
    p.fill(particle(4));
    expectEqual(p.to_host(), std::vector<Host<Particle>>(6, particle(4)));
    p.fill({});
    expectEqual(p.to_host(), std::vector<Host<Particle>>(6));
    EXPECT_EQ(p.part<int>().shape(), layout == AoS
                                         ? (std::vector<int64_t>{2, 3, 3})
                                         : (std::vector<int64_t>{3, 2, 3}));
  }
  auto one = cpu().array<Tag>({});
  one.fill({7, true});
  EXPECT_EQ(one.to_host()[0].id, 7);
  EXPECT_TRUE(one.to_host()[0].seen);
  EXPECT_EQ(cpu().array<Particle>({0}).to_host().size(), 0u);
}

/// Discrete members of a gradient are those of the array, and stay.
TEST(StructArray, GradientsOnTheHost) {
  auto p =
      cpu().array<Particle>({3}, grad | dual, {.directions = 2, .layout = SoA});
  p.from_host(particles(3));
  p.grad().from_host(particles(3, 7));
  for (int i = 0; i < 3; ++i) {
    Host<Particle> expected = particle(7 + i), own = particle(i);
    expected.kind = own.kind;
    expected.cell = own.cell;
    expected.alive = own.alive;
    expected.state.fixed = own.state.fixed;
    EXPECT_TRUE(::operator==(p.grad().to_host()[size_t(i)], expected)) << i;
  }
  p.grad().fill({});
  expectEqual(p.to_host(), particles(3));
  EXPECT_EQ(p.grad().to_host()[2].mass, 0);
  EXPECT_EQ(p.dual().shape(), (std::vector<int64_t>{2, 3}));
  p.dual().from_host(particles(6, 9));
  EXPECT_EQ(p.dual().to_host()[5].state.velocity, particle(14).state.velocity);
  EXPECT_EQ(p.dual().to_host()[5].kind, particle(2).kind);
  expectEqual(p.to_host(), particles(3));
}

/// Every way to use an element.
template <Layout L, Layout K> Kernel step() {
  return kernel("step", [](ArrayRef<Particle, 1, L> p, Scalar<cells::Wind> wind,
                           ArrayRef<Particle, 2, K> q, ArrayRef<int, 0> count,
                           ArrayRef<double, 0> loss) {
    parallel(elements(p), [&](Index i) {
      Particle one = p(i), other;
      other = one;
      IF (~one.state.fixed & one.alive) {
        FOR (t, 0, one.kind + wind.iterations) {
          one.state.velocity += 0.1 * wind.force * one.charge / one.mass;
          one.state.position += 0.1 * one.state.velocity;
        }
        one.charge *= 0.5f;
        one.cell = one.cell + other.cell;
      }
      ELSE { one.kind = -1; }
      q(0, i) = one;
      q(1, i) = p(p.size() - 1 - i);
      q(0, i).mass += p(i).state.position[one.cell.x() % 2] * one.mass;
      q(1, i).kind += 10;
      q(1, i).alive |= one.state.fixed;
      count() += 1;
      loss() += norm_sqr(one.state.position) * cast<double>(one.charge) +
                p(i).mass * one.mass;
    });
  });
}

struct Results {
  std::vector<Host<Particle>> primal, gradient, tangent;
  double loss;
};

template <Layout L, Layout K> Results resultsOf() {
  auto p = cpu().array<Particle>({5}, grad | dual, {.layout = L});
  auto q = cpu().array<Particle>({2, 5}, grad | dual, {.layout = K});
  auto count = cpu().array<int>({});
  auto loss = zeroScalar(true);
  p.from_host(particles(5));
  Host<cells::Wind> wind{{0.25, -1}, 2};
  Kernel k = step<L, K>();
  GradientCheck check = check_gradient(k, p, wind, q, count, loss);
  EXPECT_TRUE(check.ok) << check;
  Results results;
  k(p, wind, q, count, loss);
  results.primal = q.to_host();
  results.loss = loss.to_host()[0];
  EXPECT_EQ(count.to_host()[0], 5);
  q.grad().from_host(particles(10, 3));
  loss.grad().fill(2);
  k.grad(p, wind, q, count, loss);
  results.gradient = p.grad().to_host();
  p.dual().from_host(particles(5, 5));
  k.jvp(p, wind, q, count, loss);
  results.tangent = q.dual().to_host();
  expectEqual(p.to_host(), particles(5));
  return results;
}

/// The same on the host.
std::vector<Host<Particle>> expectedOfStep(double &loss) {
  const std::vector<Host<Particle>> p = particles(5);
  std::vector<Host<Particle>> q(10);
  loss = 0;
  for (size_t i = 0; i < 5; ++i) {
    Host<Particle> one = p[i], last = p[4 - i];
    bool isFixed = one.state.fixed;
    if (!isFixed && one.alive) {
      for (int t = 0; t < one.kind + 2; ++t)
        for (size_t k = 0; k < 2; ++k) {
          double force = k ? -1 : 0.25;
          one.state.velocity[k] += 0.1 * force * double(one.charge) / one.mass;
          one.state.position[k] += 0.1 * one.state.velocity[k];
        }
      one.charge *= 0.5f;
      one.cell = {2 * p[i].cell[0], 2 * p[i].cell[1]};
    } else {
      one.kind = -1;
    }
    q[i] = one;
    q[5 + i] = last;
    q[i].mass += p[i].state.position[size_t(one.cell[0] % 2)] * one.mass;
    q[5 + i].kind += 10;
    q[5 + i].alive |= isFixed;
    loss += (one.state.position[0] * one.state.position[0] +
             one.state.position[1] * one.state.position[1]) *
                double(one.charge) +
            p[i].mass * one.mass;
  }
  return q;
}

void expectNear(const std::vector<Host<Particle>> &a,
                const std::vector<Host<Particle>> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].kind, b[i].kind) << i;
    EXPECT_EQ(a[i].cell, b[i].cell) << i;
    EXPECT_EQ(a[i].alive, b[i].alive) << i;
    EXPECT_EQ(a[i].state.fixed, b[i].state.fixed) << i;
    EXPECT_NEAR(a[i].charge, b[i].charge, 1e-5) << i;
    EXPECT_NEAR(a[i].mass, b[i].mass, 1e-13) << i;
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_NEAR(a[i].state.position[k], b[i].state.position[k], 1e-12) << i;
      EXPECT_NEAR(a[i].state.velocity[k], b[i].state.velocity[k], 1e-12) << i;
    }
  }
}

TEST(StructArray, InKernelsOfBothLayouts) {
  Results first = resultsOf<AoS, AoS>();
  double loss;
  expectNear(first.primal, expectedOfStep(loss));
  EXPECT_NEAR(first.loss, loss, 1e-6);
  for (const Results &other : {resultsOf<SoA, AoS>(), resultsOf<SoA, SoA>()}) {
    expectNear(other.primal, first.primal);
    expectNear(other.gradient, first.gradient);
    expectNear(other.tangent, first.tangent);
  }
}

/// What is a whole to the user has one gradient for each float type.
TEST(StructArray, GradientsInClosedForm) {
  Kernel k =
      kernel("energy", [](ArrayRef<Particle, 1> p, ArrayRef<double, 0> e) {
        parallel(p.size(), [&](Index i) {
          Particle one = p(i);
          IF (one.alive) {
            e() += 0.5 * one.mass * norm_sqr(one.state.velocity) +
                   cast<double>(one.kind) * cast<double>(one.charge);
          }
        });
      });
  auto p = cpu().array<Particle>({6}, grad | dual);
  auto e = zeroScalar(true);
  auto values = particles(6);
  p.from_host(values);
  p.grad().fill({});
  e.grad().fill(3);
  k.grad(p, e);
  Host<Particle> direction{};
  direction.state = {{1, 1}, {1, 0}, false};
  direction.charge = 1;
  direction.mass = 2;
  p.dual().fill(direction);
  k.jvp(p, e);
  auto gradient = p.grad().to_host();
  double slope = 0;
  for (size_t i = 0; i < 6; ++i) {
    double on = values[i].alive ? 1 : 0;
    auto v = values[i].state.velocity;
    double square = v[0] * v[0] + v[1] * v[1];
    EXPECT_NEAR(gradient[i].mass, 3 * on * 0.5 * square, 1e-14);
    EXPECT_EQ(gradient[i].charge, float(3 * on * values[i].kind));
    EXPECT_NEAR(gradient[i].state.velocity[1], 3 * on * values[i].mass * v[1],
                1e-14);
    EXPECT_EQ(gradient[i].state.position[0], 0);
    slope += on * (square + values[i].mass * v[0] + values[i].kind);
  }
  EXPECT_NEAR(e.dual().to_host()[0], slope, 1e-12);
}

/// An optimiser: the gradient is an argument itself.
TEST(StructArray, GradientsAreArguments) {
  Kernel descend =
      kernel("descend", [](ArrayRef<Particle, 1> p, ArrayRef<Particle, 1> g) {
        parallel(p.size(), [&](Index i) {
          p(i).mass -= 0.5 * g(i).mass;
          p(i).state.position -=
              0.5 * cast<double>(g(i).kind) * g(i).state.position;
        });
      });
  auto p = cpu().array<Particle>({4}, grad);
  p.from_host(particles(4));
  p.grad().from_host(particles(4, 8));
  descend(p, p.grad());
  auto got = p.to_host();
  for (int i = 0; i < 4; ++i) {
    Host<Particle> own = particle(i), g = particle(8 + i);
    EXPECT_NEAR(got[size_t(i)].mass, own.mass - 0.5 * g.mass, 1e-15);
    EXPECT_NEAR(got[size_t(i)].state.position[1],
                own.state.position[1] - 0.5 * own.kind * g.state.position[1],
                1e-15);
  }
}

/// A recording copies those parts that a launch overwrites.
TEST(StructArray, OnATape) {
  Kernel rotate = kernel("rotate", [](ArrayRef<Particle, 1> p) {
    parallel(p.size(), [&](Index i) {
      Particle one = p(i);
      one.mass = one.mass * one.state.position.x() + cast<double>(one.charge);
      one.charge = one.charge * one.charge;
      one.kind += 1;
      one.state.position *= cast<double>(one.kind);
      p(i) = one;
    });
  });
  Kernel total =
      kernel("total", [](ArrayRef<Particle, 1> p, ArrayRef<double, 0> s) {
        parallel(p.size(), [&](Index i) {
          s() += p(i).mass * cast<double>(p(i).charge);
        });
      });
  auto p = cpu().array<Particle>({2}, grad);
  auto s = cpu().array<double>({}, grad);
  auto gradient = [&](const std::vector<Host<Particle>> &start) {
    p.from_host(start);
    s.fill(0);
    p.grad().fill({});
    Tape tape;
    {
      auto recording = tape.record();
      rotate(p);
      rotate(p);
      total(p, s);
    }
    tape.backward(s);
    std::ostringstream text;
    text << tape.report();
    EXPECT_NE(text.str().find("Particle of shape (2)"), std::string::npos);
    EXPECT_NE(text.str().find("the f64 members of argument 1"),
              std::string::npos)
        << text.str();
    return std::pair(s.to_host()[0], p.grad().to_host());
  };
  std::vector<Host<Particle>> start = particles(2);
  auto slope = gradient(start).second;
  auto difference = [&](auto &&change) {
    auto up = start, down = start;
    change(up[1], 1e-6);
    change(down[1], -1e-6);
    return (gradient(up).first - gradient(down).first) / 2e-6;
  };
  EXPECT_NEAR(slope[1].mass,
              difference([](auto &one, double by) { one.mass += by; }), 1e-8);
  EXPECT_NEAR(slope[1].state.position[0], difference([](auto &one, double by) {
                one.state.position[0] += by;
              }),
              1e-8);
  // Two steps: 2 m x^2 + (c x + c^2) 2.. by hand, of c in f32.
  double m = start[1].mass, x = start[1].state.position[0];
  double c = double(start[1].charge);
  int kind = start[1].kind + 1;
  double last = (m * x + c) * x * kind + c * c;
  EXPECT_NEAR(slope[1].charge,
              (x * kind + 2 * c) * std::pow(c, 4) + last * 4 * std::pow(c, 3),
              1e-5);
  Tape tape({.snapshot = true});
  tape.never_copy(p);
  {
    auto recording = tape.record();
    rotate(p);
    rotate(p);
    total(p, s);
  }
  expectError(ErrorCode::CannotReplay, {"`rotate`"}, [&] { tape.backward(s); });
}

TEST(StructArray, InAGraph) {
  Kernel k = kernel("count", [](ArrayRef<Tag, 1> t) {
    parallel(t.size(), [&](Index i) {
      t(i).id += i;
      t(i).seen |= i > 1;
    });
  });
  auto t = cpu().array<Tag>({3});
  k(t);
  Graph graph = cpu().capture([&] {
    t.fill({});
    k(t);
    k(t);
  });
  graph.replay();
  graph.replay();
  EXPECT_EQ(t.to_host()[2].id, 4);
  EXPECT_TRUE(t.to_host()[2].seen);
  EXPECT_FALSE(t.to_host()[1].seen);
}

TEST(StructArray, CustomLaunches) {
  auto p = cpu().array<Particle>({2}, grad);
  auto s = cpu().array<double>({}, grad);
  p.from_host(particles(2));
  Kernel total =
      kernel("total", [](ArrayRef<Particle, 1> p, ArrayRef<double, 0> s) {
        parallel(p.size(), [&](Index i) { s() += p(i).mass; });
      });
  CustomLaunch launch{.name = "outside",
                      .reads = {p.part<double>()},
                      .writes = {s},
                      .primal = [&] { total(p, s); },
                      .gradient = [&] { total.grad(p, s); }};
  Tape tape;
  {
    auto recording = tape.record();
    launch();
  }
  tape.backward(s);
  EXPECT_EQ(p.grad().to_host()[1].mass, 1);
}

//===-- Messages ----------------------------------------------------------===//

Kernel simple() {
  return kernel("simple", [](Scalar<cells::Wind> wind, ArrayRef<Particle, 1> p,
                             ArrayRef<double, 1> x) {
    parallel(x.size(), [&](Index i) {
      p(i).mass = x(i) * wind.force.x();
      p(i).kind = 2;
    });
  });
}

TEST(StructArray, MessagesCountAsTheUser) {
  Kernel k = simple();
  auto p = cpu().array<Particle>({2});
  auto soa = cpu().array<Particle>({2}, none, {.layout = SoA});
  auto x = constant<double>({1, 2});
  Host<cells::Wind> wind{};
  k(wind, p, x);
  expectError(ErrorCode::BadArgument,
              {"`simple`", "argument 3 (f64 array of rank 1)", "i32 array"},
              [&] { k(wind, p, constant<int>({1})); });
  expectError(ErrorCode::BadArgument,
              {"the i32 members of argument 2 (Particle array of rank 1)",
               "an array of Particle of shape (2) in SoA layout"},
              [&] { k(wind, soa, x); });
  expectError(ErrorCode::BadArgument,
              {"takes 3 arguments, but was given 2",
               "(Wind, Particle array of rank 1, f64 array of rank 1)"},
              [&] { k(wind, p); });
  expectError(ErrorCode::BadArgument,
              {"argument 1 has 3 parts, but was given 1"},
              [&] { k(1.0, p, x); });
  expectError(ErrorCode::BadArgument,
              {"argument 2 has 4 parts, but was given 1"},
              [&] { k(wind, x, x); });
  expectError(ErrorCode::BadArgument,
              {"number 3 of argument 1 (i32 scalar)", "0.5"},
              [&] { k(std::array{1.0, 2.0, 0.5}, p, x); });
  expectError(ErrorCode::BadArgument,
              {"has 2 elements, but the host has 1", "Particle of shape (2)"},
              [&] { p.from_host(particles(1)); });
  expectError(ErrorCode::MissingGradient,
              {"an array of Particle of shape (2) has no gradient"},
              [&] { p.grad(); });
  expectError(ErrorCode::BadArgument, {"cannot have a gradient"},
              [&] { cpu().array<Tag>({2}, grad); });
  expectError(ErrorCode::BadArgument, {"this array has no storage"},
              [&] { Array<Particle>().to_host(); });
  expectError(ErrorCode::BadArgument, {"Particle of shape (-1)"},
              [&] { cpu().array<Particle>({-1}); });
}

TEST(StructArray, MessagesOfLaunches) {
  Kernel copy =
      kernel("copy", [](ArrayRef<Particle, 1> p, ArrayRef<Particle, 1> q) {
        parallel(p.size(), [&](Index i) { q(i) = p(i); });
      });
  auto p = cpu().array<Particle>({2}, grad), q = cpu().array<Particle>({2});
  expectError(ErrorCode::BadArgument,
              {"the i32 members of argument 1 and the i32 members of argument "
               "2 are the same array"},
              [&] { copy(p, p); });
  copy(p, q);
  expectError(ErrorCode::MissingGradient,
              {"the f64 members of argument 2 (Particle array of rank 1) has "
               "no gradient"},
              [&] { copy.grad(p, q); });
  // Parts of different arrays.
  auto longer = cpu().array<Particle>({3});
  std::vector<AnyArray> parts;
  q.costateEach([&](const AnyArray &part) { parts.push_back(part); });
  parts[1] = longer.part<double>();
  std::vector<detail::ArgumentValue> values;
  p.costateEach([&](const AnyArray &part) { values.push_back(part); });
  for (const AnyArray &part : parts)
    values.push_back(part);
  expectError(ErrorCode::BadArgument,
              {"has shape (3)", "the i32 members of argument 2", "(2)"},
              [&] { copy.launch_with(detail::Mode::Primal, values); });
}

template <Layout L> void expectIndexErrors() {
  Kernel k = kernel("outside",
                    [](Scalar<cells::Wind>, ArrayRef<Particle, 2, L> p,
                       ArrayRef<Vec<double, 3>, 1, L> v, Scalar<int> at) {
                      parallel(1, [&](Index) {
                        IF (at < 10) {
                          p(0, at).mass = 1.0;
                        }
                        ELSE { v(0)[at] = 1.0; }
                      });
                    },
                    {.debug = true});
  auto p = cpu().array<Particle>({1, 2}, none, {.layout = L});
  auto v = cpu().array<Vec<double, 3>>({1}, none, {.layout = L});
  k(Host<cells::Wind>{}, p, v, 1);
  expectError(ErrorCode::OutOfRange,
              {"index 5 is outside dimension 1 of the f64 members of argument "
               "2, whose extent is 2"},
              [&] { k(Host<cells::Wind>{}, p, v, 5); });
  expectError(ErrorCode::OutOfRange,
              {"index 12 is outside the components of an element of argument "
               "3, whose extent is 3"},
              [&] { k(Host<cells::Wind>{}, p, v, 12); });
}

TEST(StructArray, IndexErrors) {
  expectIndexErrors<AoS>();
  expectIndexErrors<SoA>();
}

TEST(StructArray, WhatIsOverwrittenIsNamed) {
  Kernel k = kernel("twice", [](ArrayRef<Particle, 1> p) {
    parallel(p.size(), [&](Index i) { p(i).mass = sin(p(i).mass); });
  });
  auto p = cpu().array<Particle>({2}, grad);
  k(p);
  expectError(ErrorCode::CannotReplay,
              {"needs the value read here from the f64 members of argument 1"},
              [&] { k.grad(p); });
}

/// Their adjoints are f32, for which there is no struct.
TEST(StructArray, Halves) {
  using cells::Half;
  Kernel k = kernel("halves", [](ArrayRef<Half, 1> h, ArrayRef<float, 0> s) {
    parallel(h.size(),
             [&](Index i) { s() += h(i).value * cast<float>(h(i).weight); });
  });
  auto h = cpu().array<Half>({2}, grad);
  auto s = cpu().array<float>({}, grad);
  h.from_host({{f16(1.5), 2}, {f16(2), 3}});
  k(h, s);
  EXPECT_EQ(s.to_host()[0], 9);
  s.grad().fill(1);
  k.grad(h, s);
  AnyArray slope = h.part<f16>().grad();
  std::array<float, 2> got;
  slope.read(got.data(), sizeof got);
  EXPECT_EQ(got, (std::array<float, 2>{2, 3}));
}

} // namespace
