#include "rigid/Cholesky.h"

#include "adbench/Data.h"

#include <gtest/gtest.h>

namespace costate::rigid {
namespace {

using adbench::relativeError;

double loss(const CholeskyInput &in) {
  std::vector<double> factors = plainFactors(in);
  double sum = 0;
  for (size_t i = 0; i < factors.size(); ++i)
    sum += in.adjoint[i] * factors[i];
  return sum;
}

TEST(Cholesky, RaggedGradientsAgreeWithDifferencesAndByHand) {
  CholeskyInput in = randomCholesky(20, 9);
  Cholesky problem(Device::best(), in);
  problem.runFactors();
  problem.runGradient();
  std::vector<double> factors = plainFactors(in), ours = problem.gradient(),
                      differences;
  EXPECT_LE(relativeError(problem.factors(), factors), 1e-14);
  EXPECT_LE(relativeError(ours, plainGradient(in, factors)), 1e-13);
  const double h = 1e-6;
  for (double &entry : in.matrices) {
    double middle = entry;
    entry = middle + h;
    double after = loss(in);
    entry = middle - h;
    double before = loss(in);
    entry = middle;
    differences.push_back((after - before) / (2 * h));
  }
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], differences[i], 1e-6) << i;
}

} // namespace
} // namespace costate::rigid
