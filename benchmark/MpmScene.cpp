#include "MpmScene.h"

#include "costate/syntax.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <stdexcept>

namespace costate::bench {
namespace {

constexpr int64_t voxels = 32; ///< of a table, along each side
constexpr double cell = 1.0 / 64, halfWidth = 0.25, radius = 0.5;
constexpr double timeStep = 2e-4, gravity = -9.81, softness = 0.1,
                 friction = 0.4, emptyMass = 1e-10;

template <class T> using Vector = std::array<Expr<T>, 3>;

template <class T> Expr<T> dot(const Vector<T> &a, const Vector<T> &b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// The trilinear interpolation at a point in units of voxels; far outside.
template <class T> Expr<T> distance(ArrayRef<T, 3> table, const Vector<T> &at) {
  auto isInside = [&](int axis) {
    return (at[axis] >= T(0)) & (at[axis] < T(voxels - 1));
  };
  Var<T> result = T(2);
  IF (isInside(0) & isInside(1) & isInside(2)) {
    Index i = cast<int64_t>(at[0]), j = cast<int64_t>(at[1]),
          k = cast<int64_t>(at[2]);
    Expr<T> u = at[0] - cast<T>(i), v = at[1] - cast<T>(j),
            w = at[2] - cast<T>(k);
    auto mix = [](Expr<T> a, Expr<T> b, Expr<T> t) -> Expr<T> {
      return a + t * (b - a);
    };
    auto edge = [&](Index a, Index b) {
      return mix(table(a, b, k), table(a, b, k + 1), w);
    };
    result = mix(mix(edge(i, j), edge(i, j + 1), v),
                 mix(edge(i + 1, j), edge(i + 1, j + 1), v), u);
  }
  return result;
}

/// By central differences of the table.
template <class T> Vector<T> normal(ArrayRef<T, 3> table, const Vector<T> &at) {
  auto slope = [&](int axis) -> Expr<T> {
    Vector<T> before = at, after = at;
    before[axis] = before[axis] - T(0.5);
    after[axis] = after[axis] + T(0.5);
    return distance(table, after) - distance(table, before);
  };
  Vector<T> n = {slope(0), slope(1), slope(2)};
  Expr<T> length = sqrt(dot(n, n) + T(1e-12));
  return {n[0] / length, n[1] / length, n[2] / length};
}

/// What a body that moves with `motion` makes of the velocity `v` of a cell:
/// none into the body, and friction along it.
template <class T>
void bounce(std::array<Var<T>, 3> &v, const Vector<T> &motion,
            const Vector<T> &n, Expr<T> influence) {
  Vector<T> relative = {v[0] - motion[0], v[1] - motion[1], v[2] - motion[2]};
  Expr<T> into = dot(relative, n);
  IF (into < T(0)) {
    Vector<T> along = {relative[0] - into * n[0], relative[1] - into * n[1],
                       relative[2] - into * n[2]};
    Expr<T> speed = sqrt(dot(along, along) + T(1e-12));
    Expr<T> left = max(T(0), speed + into * T(friction)) / speed;
    for (int axis = 0; axis < 3; ++axis)
      v[axis] = motion[axis] + relative[axis] +
                influence * (left * along[axis] - relative[axis]);
  }
}

template <class T>
void collide(std::array<Var<T>, 3> &v, const Vector<T> &place,
             const Vector<T> &center, const Vector<T> &motion,
             ArrayRef<T, 3> table) {
  auto inVoxels = [&](int axis) -> Expr<T> {
    return ((place[axis] - center[axis]) / T(halfWidth) + T(1)) *
           T(0.5 * (voxels - 1));
  };
  Vector<T> at = {inVoxels(0), inVoxels(1), inVoxels(2)};
  Expr<T> influence = min(exp(-distance(table, at) / T(softness)), T(1));
  IF (influence > T(0.1)) {
    bounce(v, motion, normal(table, at), influence);
  }
}

/// Walls, three cells from the border.
template <class T> void stop(Var<T> &v, Index at, const Index &count) {
  IF ((at < 3) & (v < T(0))) {
    v = T(0);
  }
  ELIF ((at >= count - 3) & (v > T(0))) {
    v = T(0);
  }
}

template <class T> Kernel makeKernel() {
  return kernel("grid_op", [](ArrayRef<T, 4> mass, ArrayRef<T, 5> momentum,
                              ArrayRef<T, 3> table, ArrayRef<T, 2> center,
                              ArrayRef<T, 2> motion, ArrayRef<T, 5> velocity,
                              Scalar<int32_t> colliders) {
    parallel({mass.size(0), mass.size(1), mass.size(2), mass.size(3)},
             [&](Index i, Index j, Index k, Index scene) {
               IF (mass(i, j, k, scene) > T(emptyMass)) {
                 Expr<T> m = mass(i, j, k, scene);
                 const Index at[] = {i, j, k};
                 Vector<T> place = {cast<T>(i) * T(cell),
                                    cast<T>(j) * T(cell) - T(1),
                                    cast<T>(k) * T(cell)};
                 auto start = [&](int axis) -> Expr<T> {
                   return momentum(i, j, k, scene, axis) / m;
                 };
                 std::array<Var<T>, 3> v = {start(0), start(1), start(2)};
                 v[2] += T(timeStep * gravity);
                 FOR (c, 0, colliders) {
                   auto row = [&](ArrayRef<T, 2> of) -> Vector<T> {
                     return {of(c, 0), of(c, 1), of(c, 2)};
                   };
                   collide(v, place, row(center), row(motion), table);
                 }
                 for (int axis = 0; axis < 3; ++axis) {
                   stop(v[axis], at[axis], mass.size(axis));
                   velocity(i, j, k, scene, axis) = v[axis];
                 }
               }
             });
  });
}

//===-- The scene ---------------------------------------------------------===//

/// Distances to a sphere, in half widths of the box around it.
template <class T> std::vector<T> sphere() {
  std::vector<T> values;
  auto at = [](int64_t k) { return 2.0 * double(k) / (voxels - 1) - 1; };
  for (int64_t i = 0; i < voxels; ++i)
    for (int64_t j = 0; j < voxels; ++j)
      for (int64_t k = 0; k < voxels; ++k)
        values.push_back(T(std::hypot(at(i), at(j), at(k)) - radius));
  return values;
}

/// Whether cell k of `count` along an axis is in the block of cells with mass.
bool isIn(int64_t k, int64_t count, double share) {
  double middle = 0.5 * double(count - 1);
  return std::fabs(double(k) - middle) <= 0.5 * share * double(count);
}

std::vector<size_t> cellsWithMass(const MpmOptions &options) {
  auto [x, y, z, scenes] = options.cells;
  double share = std::cbrt(options.active);
  std::vector<size_t> cells;
  size_t cell = 0;
  for (int64_t i = 0; i < x; ++i)
    for (int64_t j = 0; j < y; ++j)
      for (int64_t k = 0; k < z; ++k)
        for (int64_t s = 0; s < scenes; ++s, ++cell)
          if (isIn(i, x, share) && isIn(j, y, share) && isIn(k, z, share))
            cells.push_back(cell);
  return cells;
}

/// In (-1, 1), without a pattern.
double noise(size_t k) {
  return double(uint32_t(k) * 2654435761u >> 8) / (1 << 23) - 1;
}

/// Around the middle of the scene, so that all meet the block in it.
template <class T> std::vector<T> centers(const MpmOptions &options) {
  std::vector<T> values;
  for (int c = 0; c < options.colliders; ++c)
    for (int axis = 0; axis < 3; ++axis) {
      double middle = 0.5 * double(options.cells[axis] - 1) * cell;
      double spread = c == 0 ? 0 : 0.1 * noise(size_t(3 * c + axis));
      values.push_back(T(middle + spread - (axis == 1)));
    }
  return values;
}

} // namespace

template <class T>
MpmScene<T>::MpmScene(const Device &device, const MpmOptions &options)
    : options(options), kernel(makeKernel<T>()),
      active(cellsWithMass(options)) {
  auto [x, y, z, scenes] = options.cells;
  int64_t colliders = options.colliders;
  size_t cells = size_t(x * y * z * scenes);
  mass = device.array<T>({x, y, z, scenes}, grad);
  momentum = device.array<T>({x, y, z, scenes, 3}, grad);
  velocity = device.array<T>({x, y, z, scenes, 3}, grad);
  table = device.array<T>({voxels, voxels, voxels});
  center = device.array<T>({colliders, 3});
  motion = device.array<T>({colliders, 3}, options.moving ? grad : none);
  std::vector<T> masses(cells), momenta(3 * cells);
  for (size_t c : active) {
    masses[c] = T(1 + 0.5 * noise(c));
    for (size_t axis = 0; axis < 3; ++axis)
      momenta[3 * c + axis] = T(noise(3 * c + axis + 7));
  }
  weights.resize(3 * cells);
  for (size_t k = 0; k < weights.size(); ++k)
    weights[k] = T(1 + 0.5 * noise(k + 13));
  mass.from_host(masses);
  momentum.from_host(momenta);
  table.from_host(sphere<T>());
  center.from_host(centers<T>(options));
  motion.fill(T(0.1));
  seed();
}

template <class T> void MpmScene<T>::launch(detail::Mode mode) const {
  const detail::ArgumentValue arguments[] = {
      mass, momentum, table, center, motion, velocity, options.colliders};
  kernel.launch_with(mode, arguments);
}

template <class T> void MpmScene<T>::seed() {
  velocity.grad().from_host(weights);
}

template <class T> void MpmScene<T>::clear() {
  mass.grad().fill(0);
  momentum.grad().fill(0);
  if (options.moving)
    motion.grad().fill(0);
}

/// All of it is saved in the loop over colliders.
template <class T> double MpmScene<T>::recordBytes() const {
  static const std::regex sum(R"(\n *all +(\d+) bytes)");
  std::string report = kernel.report();
  std::smatch found;
  if (!std::regex_search(report, found, sum))
    throw std::runtime_error("no record in the report of mpm-grid:\n" + report);
  return std::stod(found[1]) * options.colliders;
}

/// Of the weighted velocities of each cell, along one axis of its momentum.
template <class T>
std::vector<double> MpmScene<T>::slopes(const std::vector<T> &momenta, int axis,
                                        double step) {
  std::vector<double> sums(active.size());
  for (double side : {-1.0, 1.0}) {
    std::vector<T> shifted = momenta;
    for (size_t c : active)
      shifted[3 * c + size_t(axis)] += T(side * step);
    momentum.from_host(shifted);
    primal();
    std::vector<T> velocities = velocity.to_host();
    for (size_t k = 0; k < active.size(); ++k)
      for (size_t e = 3 * active[k]; e < 3 * active[k] + 3; ++e)
        sums[k] += side * double(weights[e]) * double(velocities[e]);
  }
  for (double &sum : sums)
    sum /= 2 * step;
  return sums;
}

template <class T>
typename MpmScene<T>::Differences MpmScene<T>::differences(double step) {
  std::vector<T> momenta = momentum.to_host();
  clear();
  seed();
  primal();
  gradient();
  std::vector<T> gradients = momentum.grad().to_host();
  Differences result{};
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<double> wide = slopes(momenta, axis, step),
                        narrow = slopes(momenta, axis, step / 2);
    for (size_t k = 0; k < active.size(); ++k) {
      double gradient = double(gradients[3 * active[k] + size_t(axis)]);
      double size = std::max(1.0, std::fabs(gradient));
      bool isKink = std::fabs(wide[k] - narrow[k]) > 1e-4 * size;
      ++(isKink ? result.kinks : result.judged);
      if (!isKink)
        result.relative =
            std::max(result.relative, std::fabs(gradient - narrow[k]) / size);
    }
  }
  momentum.from_host(momenta);
  return result;
}

template class MpmScene<float>;
template class MpmScene<double>;

} // namespace costate::bench
