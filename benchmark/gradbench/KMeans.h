#pragma once
/// k-means of GradBench: the sum over points of the squared distance to the
/// nearest centre, with its gradient and the diagonal of its Hessian, which is
/// the whole one, as a product with ones.

#include "costate/costate.h"

namespace costate::gradbench {

struct KMeansInput {
  int64_t k, n, d;
  std::vector<double> centres; ///< k x d
  std::vector<double> points;  ///< n x d
};

KMeansInput randomKMeans(int64_t k, int64_t n, int64_t d, uint64_t seed = 1);

class KMeans {
public:
  KMeans(const Device &device, const KMeansInput &input);

  void runCost();
  /// Gradient and diagonal.
  void runHessianProduct();

  double cost() const;
  std::vector<double> gradient() const, diagonal() const; ///< k x d

private:
  Kernel kernel;
  Array<double> centres, points, value;
};

/// The same in plain C++.
struct KMeansReference {
  double cost = 0;
  std::vector<double> gradient, diagonal;
};
KMeansReference plainKMeans(const KMeansInput &input);

} // namespace costate::gradbench
