#include "adbench/Data.h"
#include "gradbench/KMeans.h"
#include "gradbench/Particle.h"

#include <gtest/gtest.h>

namespace costate::gradbench {
namespace {

TEST(Gradbench, TheParticleLandsWhereTheAuthorsSay) {
  Particle particle(Device::best());
  EXPECT_NEAR(particle.bestControl(), 0.2071918746486116, 1e-10);
}

TEST(Gradbench, TheParticlesDerivativeAgreesWithDifferences) {
  Particle particle(Device::best());
  double h = 1e-5;
  auto here = particle.land(0.1), before = particle.land(0.1 - h),
       after = particle.land(0.1 + h);
  ASSERT_EQ(before.steps, after.steps);
  EXPECT_GT(here.steps, 300);
  EXPECT_NEAR(here.derivative, (after.square - before.square) / (2 * h), 1e-7);
}

TEST(Gradbench, KMeansHasTheGradientAndHessianOfItsClusters) {
  KMeansInput input = randomKMeans(7, 500, 3);
  KMeansReference reference = plainKMeans(input);
  KMeans problem(Device::best(), input);
  problem.runCost();
  problem.runHessianProduct();
  EXPECT_NEAR(problem.cost(), reference.cost, 1e-11 * reference.cost);
  EXPECT_LE(adbench::relativeError(problem.gradient(), reference.gradient),
            1e-12);
  EXPECT_EQ(problem.diagonal(), reference.diagonal);
}

} // namespace
} // namespace costate::gradbench
