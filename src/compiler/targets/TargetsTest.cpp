#include "compiler/targets/TargetBackend.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace costate::compiler {
namespace {

const char *const targetsOfAll[] = {"cpu",
                                    "simt",
                                    "simt;lanes=64",
                                    "sm_90",
                                    "gfx942",
                                    "gfx1100",
                                    "vulkan1.2;subgroup=32;f64",
                                    "metal3.2",
                                    "metal3.2;f64"};

TEST(Targets, EachIsOfOneKind) {
  for (const char *target : targetsOfAll) {
    EXPECT_TRUE(findTarget(target).ok()) << target;
    EXPECT_EQ(std::ranges::count_if(
                  targetKinds(),
                  [&](const TargetKind *kind) { return isOf(target, *kind); }),
              1)
        << target;
  }
}

TEST(Targets, WhatToolsShowIsCodeOfItsKind) {
  for (const TargetKind *kind : targetKinds())
    if (kind->language) {
      EXPECT_EQ(kindWith(kind->language), kind);
      EXPECT_TRUE(isOf(kind->usual(), *kind)) << kind->language;
    }
  EXPECT_EQ(kindWith("assembly"), nullptr);
}

TEST(Targets, GpusHaveAShape) {
  EXPECT_FALSE(runsOnGpu("cpu"));
  for (std::string target : targetsOfAll)
    if (runsOnGpu(target))
      EXPECT_EQ((*findTarget(target))->gpu()->lanes,
                target.ends_with("lanes=64") || target == "gfx942" ? 64 : 32)
          << target;
  EXPECT_FALSE(findTarget("simt;lanes=48").ok());
}

TEST(Targets, OthersAreRefusedByName) {
  auto found = findTarget("vulkan1.2");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(
      found.error().text,
      "nothing makes code for `vulkan1.2`; there are cpu, simt, simt;lanes=64, "
      "NVIDIA chips as sm_90, AMD chips as gfx942, Vulkan devices as "
      "vulkan1.2;subgroup=32;f64, "
      "Metal as metal3.2");
  EXPECT_FALSE(runsOnGpu("vulkan1.2"));
}

} // namespace
} // namespace costate::compiler
