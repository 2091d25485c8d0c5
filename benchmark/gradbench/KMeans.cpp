#include "gradbench/KMeans.h"

#include "costate/syntax.h"

#include <limits>
#include <random>

namespace costate::gradbench {

static Kernel makeKernel() {
  return kernel("kmeans",
                [](ArrayRef<double, 2> centres, ArrayRef<double, 2> points,
                   ArrayRef<double, 0> value) {
                  parallel(points.size(0), [&](Index i) {
                    Var<double> least = std::numeric_limits<double>::infinity();
                    FOR (k, 0, centres.size(0)) {
                      Var<double> square = 0.0;
                      FOR (j, 0, centres.size(1)) {
                        Expr<double> distance = points(i, j) - centres(k, j);
                        square += distance * distance;
                      }
                      least = min(least, square);
                    }
                    value() += least;
                  });
                });
}

KMeans::KMeans(const Device &device, const KMeansInput &in)
    : kernel(makeKernel()),
      centres(device.array<double>({in.k, in.d}, grad | dual)),
      points(device.array<double>({in.n, in.d})),
      value(device.array<double>({}, grad | dual)) {
  centres.from_host(in.centres);
  points.from_host(in.points);
}

void KMeans::runCost() {
  value.fill(0);
  kernel(centres, points, value);
  value.device().synchronize();
}

void KMeans::runHessianProduct() {
  centres.dual().fill(1);
  centres.grad().fill(0);
  centres.grad().dual().fill(0);
  value.grad().fill(1);
  kernel.gradient().jvp(centres, points, value);
  value.device().synchronize();
}

double KMeans::cost() const { return value.to_host()[0]; }
std::vector<double> KMeans::gradient() const {
  return centres.grad().to_host();
}
std::vector<double> KMeans::diagonal() const {
  return centres.grad().dual().to_host();
}

KMeansInput randomKMeans(int64_t k, int64_t n, int64_t d, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  KMeansInput in{k, n, d, {}, {}};
  auto fill = [&](std::vector<double> &values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      values.push_back(normal(random));
  };
  fill(in.centres, k * d);
  fill(in.points, n * d);
  return in;
}

KMeansReference plainKMeans(const KMeansInput &in) {
  KMeansReference all;
  all.gradient.resize(in.centres.size());
  all.diagonal.resize(in.centres.size());
  for (int64_t i = 0; i < in.n; ++i) {
    const double *point = &in.points[i * in.d];
    int64_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k < in.k; ++k) {
      double square = 0;
      for (int64_t j = 0; j < in.d; ++j) {
        double distance = point[j] - in.centres[k * in.d + j];
        square += distance * distance;
      }
      if (square < least) {
        least = square;
        nearest = k;
      }
    }
    all.cost += least;
    for (int64_t j = nearest * in.d; j < (nearest + 1) * in.d; ++j) {
      all.gradient[j] += 2 * (in.centres[j] - point[j - nearest * in.d]);
      all.diagonal[j] += 2;
    }
  }
  return all;
}

} // namespace costate::gradbench
