#include "runtime/MemoryBudget.h"

#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;

TEST(MemoryBudget, SizesAreReadWithTheirSuffix) {
  EXPECT_EQ(*parseBytes("512"), 512u);
  EXPECT_EQ(*parseBytes("64k"), 64u << 10);
  EXPECT_EQ(*parseBytes("1.5G"), size_t(1.5 * (1u << 30)));
  for (const char *text : {"", "k", "-1", "12x", "1e30", "nan", "0"}) {
    Result<size_t> size = parseBytes(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.error().code, ErrorCode::BadArgument);
  }
}

TEST(MemoryBudget, TheDefaultLimitIsPositiveAndBelowTheMachine) {
  Result<size_t> limit = defaultMemoryLimit();
  ASSERT_TRUE(limit.ok());
  EXPECT_GT(*limit, 1u << 20);
}

TEST(MemoryBudget, NeverExceedsItsLimit) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.take(60));
  EXPECT_FALSE(budget.take(41));
  EXPECT_FALSE(budget.take(SIZE_MAX));
  EXPECT_TRUE(budget.take(40));
  budget.give(60);
  EXPECT_EQ(budget.current(), 40u);
  EXPECT_EQ(budget.peak(), 100u);
}

TEST(MemoryBudget, FewerThreadsAreAWayOutOnlyIfTheyShareTheBudget) {
  auto has = [](bool isShared, const char *part) {
    std::string text =
        tapeBudgetText(1 << 10, "a work item needs 2 KiB", isShared);
    return text.find(part) != text.npos;
  };
  EXPECT_TRUE(has(true, "use fewer threads, or keep"));
  EXPECT_FALSE(has(false, "threads"));
  EXPECT_TRUE(has(false, "COSTATE_TAPE_BUDGET), or keep"));
}
