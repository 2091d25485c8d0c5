#include "base/VulkanChip.h"
#include "base/VulkanTables.h"

#include <gtest/gtest.h>
#include <vector>

using namespace costate;

namespace {

std::vector<std::string> namesOf(const std::string &chip) {
  std::vector<std::string> names;
  for (size_t at = chip.find(';'); at != std::string::npos;) {
    size_t end = chip.find(';', at + 1);
    names.push_back(chip.substr(at + 1, end - at - 1));
    at = end;
  }
  return names;
}

TEST(VulkanChip, IsReadAsItWasWritten) {
  VulkanFeatures some{.major = 1, .minor = 3, .subgroup = 8};
  some.f64 = some.i64Atomics = true;
  EXPECT_EQ(vulkanChip(some), "vulkan1.3;subgroup=8;f64;i64atomics");
  for (const VulkanFeatures &features :
       {some, VulkanFeatures::everything(), VulkanFeatures()}) {
    auto read = parseVulkanChip(vulkanChip(features));
    ASSERT_TRUE(read) << vulkanChip(features);
    EXPECT_TRUE(*read == features) << vulkanChip(features);
  }
}

TEST(VulkanChip, FeaturesAreInOneOrder) {
  std::vector<std::string> names =
      namesOf(vulkanChip(VulkanFeatures::everything()));
  EXPECT_EQ(names.front(), "subgroup=32");
  EXPECT_TRUE(std::is_sorted(names.begin() + 1, names.end()));
  auto read = parseVulkanChip("vulkan1.2;subgroup=32;vote;f64");
  ASSERT_TRUE(read);
  EXPECT_EQ(vulkanChip(*read), "vulkan1.2;subgroup=32;f64;vote");
}

TEST(VulkanChip, NothingElseIsRead) {
  for (const char *text :
       {"", "sm_90", "vulkan", "vulkan1", "vulkan1.3", "vulkan1.3;f64",
        "vulkan1.3;subgroup=;f64", "vulkan1.3;subgroup=-4",
        "vulkan1.3;subgroup=0;f64", "vulkan1.3;subgroup=32;f64;",
        "vulkan1.3;subgroup=32;", "vulkan1.3;subgroup=32;f65",
        "vulkan1.3;subgroup=32f64", "vulkan1.3;subgroup=32;;f64"})
    EXPECT_FALSE(parseVulkanChip(text)) << text;
}

TEST(VulkanChip, FeaturesCanBeLeftOut) {
  auto left = without(VulkanFeatures::everything(), "");
  ASSERT_TRUE(left);
  EXPECT_TRUE(*left == VulkanFeatures::everything());
  left = without(VulkanFeatures::everything(), "warps;f16");
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->warps || left->f16);
  left->warps = left->f16 = true;
  EXPECT_TRUE(*left == VulkanFeatures::everything());
  for (const char *text :
       {"f65", "f16,f64", "f16;;f64", "f16;", ";", "endslongloops"})
    EXPECT_FALSE(without(VulkanFeatures::everything(), text)) << text;
}

TEST(VulkanChip, DefectsCanBeAssumed) {
  auto worse =
      without(VulkanFeatures::everything(), "miscompilesnegatedminimum");
  ASSERT_TRUE(worse);
  EXPECT_TRUE(worse->miscompilesNegatedMinimum);
  EXPECT_TRUE(vulkanChip(*worse).ends_with(";miscompilesnegatedminimum"));
  EXPECT_TRUE(parseVulkanChip(vulkanChip(*worse)) == worse);
}

TEST(VulkanChip, WarpsNeedOtherFeatures) {
  for (const char *text :
       {"reconvergence", "fullsubgroups", "arithmetic", "shufflerelative"})
    EXPECT_FALSE(without(VulkanFeatures::everything(), text)->warps) << text;
  EXPECT_TRUE(without(VulkanFeatures::everything(), "f16")->warps);
}

TEST(VulkanChip, ProfilesLimitFeatures) {
  for (const VulkanProfile &profile : vulkanProfiles) {
    auto read = parseVulkanChip(profile.chip);
    ASSERT_TRUE(read) << profile.name;
    EXPECT_EQ(vulkanChip(*read), profile.chip);
    auto left = limitedTo(VulkanFeatures::everything(), profile.name);
    ASSERT_TRUE(left);
    EXPECT_EQ(vulkanChip(*left), profile.chip);
    left = limitedTo(VulkanFeatures::everything(),
                     std::string(profile.name) + ";f64");
    ASSERT_TRUE(left);
    EXPECT_TRUE(left->f64 && left->fma64 && left->i64Atomics);
    VulkanFeatures few{.major = 1, .minor = 2, .subgroup = 8};
    few.ballot = few.endsLongLoops = few.i64Atomics = true;
    EXPECT_EQ(vulkanChip(*limitedTo(few, profile.name)),
              "vulkan1.2;subgroup=8;ballot;endslongloops");
  }
  for (const char *name : {"", "f64", ";f64", "moltenvk;f16", "MoltenVK"})
    EXPECT_FALSE(limitedTo(VulkanFeatures::everything(), name)) << name;
}

TEST(VulkanChip, BlocksAreWarpsWhereSubgroupsAreNone) {
  EXPECT_EQ(VulkanFeatures{.subgroup = 32}.largestBlock(), 32);
  EXPECT_EQ(VulkanFeatures{.subgroup = 8}.largestBlock(), 32);
}

TEST(VulkanTables, AreBytesThatAreReadAsTheyWereWritten) {
  std::string bytes;
  for (int k = 0; k < 256; ++k)
    bytes += static_cast<char>(k);
  EXPECT_EQ(vulkanTables(vulkanTablesText(bytes)), bytes);
  EXPECT_EQ(vulkanTables(vulkanTablesText("")), "");
  EXPECT_FALSE(vulkanTables("the name of a file"));
}

} // namespace
