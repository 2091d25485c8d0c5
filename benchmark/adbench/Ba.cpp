#include "adbench/Ba.h"

#include "costate/syntax.h"

#include <array>

namespace costate::adbench {

using Real = Expr<double>;
using Vec3 = std::array<Real, 3>;

namespace {

struct Residual {
  Real u, v;
};

/// Parameters of one observation: camera 11, point 3, weight 1.
constexpr int parameterCount = 15;
using Parameters = std::array<Real, parameterCount>;

Real dot(const Vec3 &a, const Vec3 &b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vec3 cross(const Vec3 &a, const Vec3 &b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
          a[0] * b[1] - a[1] * b[0]};
}

/// Rodrigues' rotation of `x` about `r` by |r|.
Vec3 rotate(const Vec3 &r, const Vec3 &x) {
  Real squared = dot(r, r);
  Vec3 rotated = cross(r, x);
  Var<double> result[3];
  IF (squared == 0.0) {
    for (int i = 0; i < 3; ++i)
      result[i] = x[i] + rotated[i];
  }
  ELSE {
    Real angle = sqrt(squared), cosine = cos(angle), sine = sin(angle) / angle;
    Real along = dot(r, x) / squared * (1.0 - cosine);
    for (int i = 0; i < 3; ++i)
      result[i] = x[i] * cosine + rotated[i] * sine + r[i] * along;
  }
  return {Real(result[0]), Real(result[1]), Real(result[2])};
}

Residual residual(const Parameters &in, Real featureU, Real featureV) {
  Vec3 seen = rotate({in[0], in[1], in[2]},
                     {in[11] - in[3], in[12] - in[4], in[13] - in[5]});
  Real u = seen[0] / seen[2], v = seen[1] / seen[2];
  Real squared = u * u + v * v;
  Real scale = (1.0 + in[9] * squared + in[10] * squared * squared) * in[6];
  return {in[14] * (u * scale + in[7] - featureU),
          in[14] * (v * scale + in[8] - featureV)};
}

Parameters gather(ArrayRef<double, 2> cameras, ArrayRef<double, 2> points,
                  ArrayRef<double, 1> weights, ArrayRef<int32_t, 1> cameraOf,
                  ArrayRef<int32_t, 1> pointOf, Index i) {
  Expr<int32_t> camera = cameraOf(i), point = pointOf(i);
  Parameters result;
  for (int c = 0; c < 11; ++c)
    result[c] = Real(cameras(camera, c));
  for (int c = 0; c < 3; ++c)
    result[11 + c] = Real(points(point, c));
  result[14] = Real(weights(i));
  return result;
}

Kernel makeResidualKernel() {
  return kernel(
      "ba", [](ArrayRef<double, 2> cameras, ArrayRef<double, 2> points,
               ArrayRef<double, 1> weights, ArrayRef<int32_t, 1> cameraOf,
               ArrayRef<int32_t, 1> pointOf, ArrayRef<double, 2> features,
               ArrayRef<double, 1> u, ArrayRef<double, 1> v,
               ArrayRef<double, 1> weightErrors) {
        parallel(u.size(0), [&](Index i) {
          Parameters in =
              gather(cameras, points, weights, cameraOf, pointOf, i);
          Residual error = residual(in, features(0, i), features(1, i));
          u(i) = error.u;
          v(i) = error.v;
          weightErrors(i) = 1.0 - in[14] * in[14];
        });
      });
}

Kernel makeGatherKernel() {
  return kernel("ba_gather",
                [](ArrayRef<double, 2> cameras, ArrayRef<double, 2> points,
                   ArrayRef<double, 1> weights, ArrayRef<int32_t, 1> cameraOf,
                   ArrayRef<int32_t, 1> pointOf, ArrayRef<double, 2> first,
                   ArrayRef<double, 2> second) {
                  parallel(weights.size(0), [&](Index i) {
                    Parameters in =
                        gather(cameras, points, weights, cameraOf, pointOf, i);
                    for (int c = 0; c < parameterCount; ++c) {
                      first(c, i) = in[c];
                      second(c, i) = in[c];
                    }
                  });
                });
}

Kernel makeLocalKernel() {
  return kernel("ba_local", [](ArrayRef<double, 2> parameters,
                               ArrayRef<double, 2> features,
                               ArrayRef<double, 1> u, ArrayRef<double, 1> v) {
    parallel(u.size(0), [&](Index i) {
      Parameters in;
      for (int c = 0; c < parameterCount; ++c)
        in[c] = Real(parameters(c, i));
      Residual error = residual(in, features(0, i), features(1, i));
      u(i) = error.u;
      v(i) = error.v;
    });
  });
}

std::vector<double> transposed(const std::vector<double> &pairs) {
  size_t count = pairs.size() / 2;
  std::vector<double> result(pairs.size());
  for (size_t i = 0; i < count; ++i)
    for (size_t c = 0; c < 2; ++c)
      result[c * count + i] = pairs[2 * i + c];
  return result;
}

} // namespace

Ba::Ba(const Device &device, const BaInput &in)
    : residualKernel(makeResidualKernel()), gatherKernel(makeGatherKernel()),
      localKernel(makeLocalKernel()), cameras(device.array<double>({in.n, 11})),
      points(device.array<double>({in.m, 3})),
      weights(device.array<double>({in.p})),
      features(device.array<double>({2, in.p})),
      cameraOf(device.array<int32_t>({in.p})),
      pointOf(device.array<int32_t>({in.p})),
      u(device.array<double>({in.p}, grad)),
      v(device.array<double>({in.p}, grad)),
      weightErrors(device.array<double>({in.p})),
      first(device.array<double>({parameterCount, in.p}, grad)),
      second(device.array<double>({parameterCount, in.p}, grad)) {
  cameras.from_host(in.cameras);
  points.from_host(in.points);
  weights.from_host(in.weights);
  features.from_host(transposed(in.features));
  cameraOf.from_host(in.cameraOf);
  pointOf.from_host(in.pointOf);
}

void Ba::runResiduals() {
  residualKernel(cameras, points, weights, cameraOf, pointOf, features, u, v,
                 weightErrors);
  u.device().synchronize();
}

void Ba::runRow(Array<double> &parameters, double seedU, double seedV) {
  parameters.grad().fill(0);
  u.grad().fill(seedU);
  v.grad().fill(seedV);
  localKernel.grad(parameters, features, u, v);
}

void Ba::runJacobians() {
  gatherKernel(cameras, points, weights, cameraOf, pointOf, first, second);
  runRow(first, 1, 0);
  runRow(second, 0, 1);
  u.device().synchronize();
}

std::vector<double> Ba::residuals() const {
  std::vector<double> us = u.to_host(), vs = v.to_host(), all;
  for (size_t i = 0; i < us.size(); ++i)
    all.insert(all.end(), {us[i], vs[i]});
  return all;
}

std::vector<double> Ba::jacobians() const {
  std::vector<double> us = first.grad().to_host(), vs = second.grad().to_host(),
                      all;
  size_t count = us.size() / parameterCount;
  all.reserve(2 * us.size());
  for (size_t i = 0; i < count; ++i)
    for (size_t c = 0; c < parameterCount; ++c)
      all.insert(all.end(), {us[c * count + i], vs[c * count + i]});
  return all;
}

} // namespace costate::adbench
