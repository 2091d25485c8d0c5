#include "TapeWorks.h"

#include "Labels.h"
#include "conformance/TestDevice.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::bench;

namespace {

std::vector<TapeWork> allWorks(TapeBody body, size_t items) {
  return {uniformWork(body, items, 64), uniformWork(body, items, 300),
          exponentialWork(body, items), rareWork(body, items),
          nestWork(body, items),        whileWork(body, items)};
}

class TapeWorks : public testing::TestWithParam<TapeBody> {};

TEST_P(TapeWorks, HaveTheGradientsOfPlainLoops) {
  Device device = test::openDevice();
  // Functions of a GPU that approximate also change trip counts.
  bool approximates =
      GetParam() == TapeBody::Fast && test::hasOwnFunctions(device);
  for (const TapeWork &work : allWorks(GetParam(), 3000)) {
    BoundWork bound(work, device);
    bound.gradient();
    EXPECT_LT(relativeError(work, bound.gradients()),
              approximates ? 0.05 : 1e-4)
        << work.name;
  }
}

TEST_P(TapeWorks, AddToTheGradientsAtEachLaunch) {
  TapeWork work = whileWork(GetParam(), 300);
  BoundWork bound(work, test::openDevice());
  bound.gradient();
  std::vector<float> once = bound.gradients();
  bound.gradient();
  std::vector<float> twice = bound.gradients();
  for (size_t k = 0; k < once.size(); ++k)
    EXPECT_EQ(twice[k], 2 * once[k]);
  bound.clear();
  for (float value : bound.gradients())
    EXPECT_EQ(value, 0);
}

INSTANTIATE_TEST_SUITE_P(All, TapeWorks,
                         testing::Values(TapeBody::Fast, TapeBody::Accurate,
                                         TapeBody::Proof),
                         [](const auto &info) { return nameOf(info.param); });

/// A gradient that is 0 would prove nothing about records.
TEST(TapeWorks, ProofsKeepTheSizeOfTheirGradients) {
  for (const TapeWork &work : allWorks(TapeBody::Proof, 3000))
    for (size_t i = 0; i < 3000; i += 10) {
      double gradient = work.expected(i).front().x;
      EXPECT_GT(gradient, 0.4) << work.name;
      EXPECT_LT(gradient, 2.1) << work.name;
    }
}

TEST(TapeWorks, ChaoticLoopsEndAfterManyIterationsButNotTheSame) {
  TapeWork work = whileWork(TapeBody::Proof, 3000);
  double sum = 0, most = 0;
  for (size_t i = 0; i < 3000; ++i) {
    double byScale = work.expected(i).front().scale;
    sum += byScale;
    most = std::max(most, byScale);
  }
  double mean = sum / 3000 / 1.07e-3; // g of what a loop ends with
  EXPECT_GT(mean, 50);
  EXPECT_LT(mean, 200);
  EXPECT_GT(most / 1.07e-3, 4 * mean);
}

} // namespace
