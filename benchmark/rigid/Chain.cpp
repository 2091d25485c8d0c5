#include "rigid/Chain.h"

#include "costate/syntax.h"

#include <cmath>
#include <random>

namespace costate::rigid {
namespace {

using Real = Expr<double>;
using Real3 = VecExpr<double, 3>;
using Links = ArrayRef<double, 3>; // link, component, scene

constexpr double dt = 0.01, damping = 0.1;

Real3 at(Links x, Index l, Index e) {
  return vec(Real(x(l, 0, e)), Real(x(l, 1, e)), Real(x(l, 2, e)));
}

void put(Links x, Index l, Index e, const Real3 &v) {
  for (int k = 0; k < 3; ++k)
    x(l, k, e) = v[k];
}

/// The joints of one scene, from the first link to the last.
void kinematics(Index n, Index e, ArrayRef<int32_t, 1> parent,
                ArrayRef<double, 2> axes, ArrayRef<double, 1> length,
                ArrayRef<double, 2> angle, Links frame, Links origin,
                Links axis, Links tip) {
  FOR (l, 0, n) {
    Vec<double, 4> rotated = quaternion::identity<double>();
    Vec<double, 3> start = vec(Real(0), Real(0), Real(0));
    Index above = parent(l);
    IF (above >= 0) {
      rotated = vec(Real(frame(above, 0, e)), Real(frame(above, 1, e)),
                    Real(frame(above, 2, e)), Real(frame(above, 3, e)));
      start = at(tip, above, e);
    }
    Real3 own = vec(Real(axes(l, 0)), Real(axes(l, 1)), Real(axes(l, 2)));
    Vec<double, 4> q = quaternion::multiply(
        rotated, quaternion::from_axis_angle(own, Real(angle(l, e))));
    for (int k = 0; k < 4; ++k)
      frame(l, k, e) = q[k];
    put(origin, l, e, start);
    put(axis, l, e, quaternion::rotate(rotated, own));
    put(tip, l, e,
        start + quaternion::rotate(q, vec(Real(length(l)), Real(0), Real(0))));
  }
}

/// Mass, first and second moments about the origin of space of each link, a
/// thin rod with isotropic inertia, and of all behind it. Sums go to the
/// parents.
void composite(Index n, Index e, ArrayRef<int32_t, 1> parent,
               ArrayRef<double, 1> length, ArrayRef<double, 1> mass,
               Links origin, Links tip, Links moment, Links inertia) {
  FOR (l, 0, n) {
    Real m = mass(l), size = length(l);
    Vec<double, 3> c = 0.5 * (at(origin, l, e) + at(tip, l, e));
    Real own = m * (dot(c, c) + size * size / 12.0);
    moment(l, 0, e) = m;
    for (int k = 0; k < 3; ++k)
      moment(l, k + 1, e) = m * c[k];
    for (int row = 0, entry = 0; row < 3; ++row)
      for (int column = 0; column <= row; ++column, ++entry) {
        Real product = -(m * c[row] * c[column]);
        inertia(l, entry, e) = row == column ? own + product : product;
      }
  }
  FOR (l, n - 1, -1, -1) {
    Index above = parent(l);
    IF (above >= 0) {
      for (int k = 0; k < 4; ++k)
        moment(above, k, e) += moment(l, k, e);
      for (int k = 0; k < 6; ++k)
        inertia(above, k, e) += inertia(l, k, e);
    }
  }
}

/// The mass matrix, by the momentum of a rotation of each joint and what it
/// does to the joints above; and the forces of gravity and damping.
void dynamics(Index n, Index e, ArrayRef<int32_t, 1> parent,
              ArrayRef<double, 2> speed, Links origin, Links axis, Links moment,
              Links inertia, Links matrix, ArrayRef<double, 2> force) {
  FOR (i, 0, n) {
    FOR (j, 0, i) {
      matrix(i, j, e) = 0.0;
    }
    Real3 w = at(axis, i, e), o = at(origin, i, e);
    Real m = moment(i, 0, e);
    Real3 first = vec(Real(moment(i, 1, e)), Real(moment(i, 2, e)),
                      Real(moment(i, 3, e)));
    auto entry = [&](int k) -> Real { return inertia(i, k, e); };
    Real3 rotated = vec(entry(0) * w[0] + entry(1) * w[1] + entry(3) * w[2],
                        entry(1) * w[0] + entry(2) * w[1] + entry(4) * w[2],
                        entry(3) * w[0] + entry(4) * w[1] + entry(5) * w[2]);
    Vec<double, 3> linear = cross(w, first - m * o);
    Vec<double, 3> angular = rotated - cross(o, cross(w, first)) -
                             cross(first, cross(w, o)) +
                             m * cross(o, cross(w, o));
    Var<int64_t> j = i;
    WHILE (j >= 0) {
      matrix(i, j, e) =
          dot(at(axis, j, e), angular + cross(o - at(origin, j, e), linear));
      j = cast<int64_t>(parent(j));
    }
    matrix(i, i, e) = matrix(i, i, e) + 1e-3;
    Real3 weight = vec(Real(0), Real(0), Real(-9.81));
    force(i, e) = dot(w, cross(first - m * o, weight)) - damping * speed(i, e);
  }
}

void factor(Index n, Index e, Links matrix, Links lower) {
  FOR (i, 0, n) {
    FOR (j, 0, i + 1) {
      Var<double> rest = matrix(i, j, e);
      FOR (k, 0, j) {
        rest -= lower(i, k, e) * lower(j, k, e);
      }
      IF (i == j) {
        lower(i, i, e) = sqrt(rest);
      }
      ELSE { lower(i, j, e) = rest / lower(j, j, e); }
    }
  }
}

/// In place: forces become accelerations.
void solve(Index n, Index e, Links lower, ArrayRef<double, 2> force) {
  FOR (i, 0, n) {
    Var<double> rest = force(i, e);
    FOR (k, 0, i) {
      rest -= lower(i, k, e) * force(k, e);
    }
    force(i, e) = rest / lower(i, i, e);
  }
  FOR (i, n - 1, -1, -1) {
    Var<double> rest = force(i, e);
    FOR (k, i + 1, n) {
      rest -= lower(k, i, e) * force(k, e);
    }
    force(i, e) = rest / lower(i, i, e);
  }
}

Kernel makeStep() {
  return kernel("step", [](ArrayRef<int32_t, 1> links,
                           ArrayRef<int32_t, 1> parent,
                           ArrayRef<double, 2> axes, ArrayRef<double, 1> length,
                           ArrayRef<double, 1> mass, ArrayRef<double, 2> angle,
                           ArrayRef<double, 2> speed, Links frame, Links origin,
                           Links axis, Links tip, Links moment, Links inertia,
                           Links matrix, Links lower,
                           ArrayRef<double, 2> force) {
    parallel(links.size(), [&](Index e) {
      Index n = links(e);
      kinematics(n, e, parent, axes, length, angle, frame, origin, axis, tip);
      composite(n, e, parent, length, mass, origin, tip, moment, inertia);
      dynamics(n, e, parent, speed, origin, axis, moment, inertia, matrix,
               force);
      factor(n, e, matrix, lower);
      solve(n, e, lower, force);
      FOR (i, 0, n) {
        Real faster = speed(i, e) + dt * force(i, e);
        speed(i, e) = faster;
        angle(i, e) = angle(i, e) + dt * faster;
      }
    });
  });
}

Kernel makeMeasure() {
  return kernel("measure", [](ArrayRef<int32_t, 1> links, Links tip,
                              ArrayRef<double, 2> speed,
                              ArrayRef<double, 0> loss) {
    parallel(links.size(), [&](Index e) {
      FOR (l, 0, links(e)) {
        loss() += tip(l, 2, e) * tip(l, 2, e) + 0.1 * speed(l, e) * speed(l, e);
      }
    });
  });
}

} // namespace

ChainInput randomChain(int64_t scenes, int64_t most, int steps, bool branches,
                       uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> some(0, 1);
  ChainInput in{};
  in.scenes = scenes;
  in.most = most;
  in.steps = steps;
  for (int64_t l = 0; l < most; ++l) {
    in.parent.push_back(
        static_cast<int32_t>(branches && l % 3 == 2 ? l - 2 : l - 1));
    double around = 6 * some(random), up = 2 * some(random) - 1,
           out = std::sqrt(1 - up * up);
    for (double part : {out * std::cos(around), out * std::sin(around), up})
      in.axes.push_back(part);
    in.lengths.push_back(0.5 + some(random));
    in.masses.push_back(0.5 + some(random));
  }
  for (int64_t e = 0; e < scenes; ++e)
    in.links.push_back(
        static_cast<int32_t>(most - e % std::min<int64_t>(most, 3)));
  for (int64_t k = 0; k < most * scenes; ++k)
    in.angles.push_back(2 * some(random) - 1);
  return in;
}

Chain::Chain(const Device &device, const ChainInput &in)
    : input(in), lengths(in.lengths), masses(in.masses), angles(in.angles),
      step(makeStep()), measure(makeMeasure()),
      links(device.array<int32_t>({in.scenes})),
      parent(device.array<int32_t>({in.most})),
      axes(device.array<double>({in.most, 3})),
      length(device.array<double>({in.most}, grad)),
      mass(device.array<double>({in.most}, grad)),
      angle(device.array<double>({in.most, in.scenes}, grad)),
      speed(device.array<double>({in.most, in.scenes}, grad)),
      frame(device.array<double>({in.most, 4, in.scenes}, grad)),
      origin(device.array<double>({in.most, 3, in.scenes}, grad)),
      axis(device.array<double>({in.most, 3, in.scenes}, grad)),
      tip(device.array<double>({in.most, 3, in.scenes}, grad)),
      moment(device.array<double>({in.most, 4, in.scenes}, grad)),
      inertia(device.array<double>({in.most, 6, in.scenes}, grad)),
      matrix(device.array<double>({in.most, in.most, in.scenes}, grad)),
      lower(device.array<double>({in.most, in.most, in.scenes}, grad)),
      force(device.array<double>({in.most, in.scenes}, grad)),
      loss(device.array<double>({}, grad)) {
  links.from_host(in.links);
  parent.from_host(in.parent);
  axes.from_host(in.axes);
}

void Chain::start() {
  length.from_host(lengths);
  mass.from_host(masses);
  angle.from_host(angles);
  speed.fill(0);
  loss.fill(0);
}

void Chain::launch() {
  for (int t = 0; t < input.steps; ++t)
    step(links, parent, axes, length, mass, angle, speed, frame, origin, axis,
         tip, moment, inertia, matrix, lower, force);
  measure(links, tip, speed, loss);
}

double Chain::run() {
  start();
  launch();
  return loss.to_host()[0];
}

double Chain::runGradient() {
  start();
  for (Array<double> *parameter : {&length, &mass, &angle})
    parameter->grad().fill(0);
  Tape tape;
  {
    auto recording = tape.record();
    launch();
  }
  tape.backward(loss);
  return loss.to_host()[0];
}

std::vector<double> Chain::gradient() const {
  std::vector<double> all;
  for (const Array<double> *parameter : {&length, &mass, &angle})
    for (double entry : parameter->grad().to_host())
      all.push_back(entry);
  return all;
}

void Chain::move(size_t number, double by) {
  for (std::vector<double> *values : {&lengths, &masses, &angles}) {
    if (number < values->size()) {
      (*values)[number] += by;
      return;
    }
    number -= values->size();
  }
}

} // namespace costate::rigid
