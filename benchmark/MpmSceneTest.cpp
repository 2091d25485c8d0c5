#include "MpmScene.h"

#include "conformance/TestDevice.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::bench;

namespace {

MpmOptions small(int colliders, double active) {
  return {.cells = {33, 33, 17, 2}, .colliders = colliders, .active = active};
}

TEST(MpmScene, GradientsAreThoseOfDifferences) {
  for (int colliders : {1, 4}) {
    MpmScene<double> scene(test::openDevice(), small(colliders, 0.2));
    auto found = scene.differences(1e-6);
    EXPECT_LT(found.relative, 1e-5);
    EXPECT_GT(found.judged, 3 * scene.activeCells() * 9 / 10);
    EXPECT_EQ(found.judged + found.kinks, 3 * scene.activeCells());
  }
}

TEST(MpmScene, HasAsManyCellsWithMassAsAsked) {
  Device device = test::openDevice();
  MpmOptions whole; // 603,720 cells
  EXPECT_EQ(MpmScene<float>(device, small(1, 1)).activeCells(),
            33u * 33 * 17 * 2);
  for (double share : {0.005, 0.08}) {
    whole.active = share;
    double cells = double(MpmScene<float>(device, whole).activeCells());
    EXPECT_NEAR(cells / 603720, share, 0.15 * share);
  }
}

/// Positions and normals come from the table again, so little is left: the
/// velocity at the start of each iteration, and what cannot be restored.
TEST(MpmScene, SavesLittleForEachCollider) {
  MpmScene<float> scene(test::openDevice(), small(4, 0.2));
  scene.gradient();
  EXPECT_GE(scene.recordBytes(), 4 * 3 * 4);
  EXPECT_LE(scene.recordBytes(), 4 * 100);
}

} // namespace
