#include "compiler/NvidiaCode.h"

#include "base/DeviceSymbol.h"

namespace costate::compiler {
namespace {

/// Of the function `name`, from the line that says so on.
std::string kernelIn(const std::string &text, const std::string &name) {
  size_t start = text.find(".entry " + deviceSymbol(name) + "(");
  return start == std::string::npos
             ? ""
             : text.substr(start, text.find("\n}", start) - start);
}

TEST(Nvidia, KernelsOfTilesSortBeforeThemOrDoNothingElse) {
  std::string text = ptx(sortedTiles);
  EXPECT_FALSE(contains(text, ".extern .func")) << text;
  for (const char *name : {"tiles", "tiles.shared"}) {
    std::string kernel = kernelIn(text, name);
    EXPECT_TRUE(contains(kernel, "atom.acq_rel.gpu.global.add.u64")) << text;
    EXPECT_TRUE(contains(kernel, "costate_block_memory")) << text;
    EXPECT_TRUE(contains(kernel, ".maxntid 256")) << text;
    EXPECT_TRUE(contains(kernel, ".minnctapersm 3")) << text;
    EXPECT_TRUE(contains(kernel, "1234567")) << text;
  }
  std::string sort = kernelIn(text, "tiles.sort");
  EXPECT_TRUE(contains(sort, "atom.acq_rel.gpu.global.add.u64")) << text;
  EXPECT_TRUE(contains(sort, ".minnctapersm 4")) << text;
  EXPECT_FALSE(contains(sort, "1234567")) << text;
  std::string drain = kernelIn(text, "tiles.drain");
  EXPECT_TRUE(contains(drain, ".minnctapersm 1")) << text;
  EXPECT_FALSE(contains(drain, "atom.acq_rel")) << text;
}

TEST(Nvidia, GatheredAdditionsHaveRegistersForLoadsAtOnce) {
  std::string text = ptx(R"(
define void @gather(ptr %words, i64 %thread, i64 %threads, ptr %memory) #0 {
  %a = load ptr, ptr %words
  store i64 %thread, ptr %a
  ret void
}
attributes #0 = { "costate-words"="1" "costate-gathers" }
)");
  EXPECT_TRUE(contains(text, ".maxntid 256")) << text;
  EXPECT_TRUE(contains(text, ".minnctapersm 4")) << text;
}

TEST(Nvidia, BlocksKeepSumsOfCommonElements) {
  std::string text = ptx(blockSums);
  EXPECT_EQ(countOf(text, ".shared .align 8 .b8 costateCommon"), 2u) << text;
  EXPECT_TRUE(contains(text, "shared.cas.b64")) << text;
  EXPECT_TRUE(contains(text, "atom.shared.add.f32")) << text;
  EXPECT_TRUE(contains(text, "atom.shared.add.f64")) << text;
  EXPECT_EQ(countOf(text, "bar.sync"), 2u) << text;
  EXPECT_FALSE(contains(text, ".extern")) << text;
}

TEST(Nvidia, LeastPairsGoThroughLanesAndSharedMemory) {
  std::string text = ptx(R"(
declare void @costate_device_add_up_pair(ptr, i64, i64, i64, ptr, double, double)
declare i64 @costate_device_finish_sums(ptr, i64, ptr, i64, i64, ptr, i64, i64, ptr)
define void @pairs(ptr %words, i64 %thread, i64 %threads, ptr %memory) #0 {
  %ticket = getelementptr i64, ptr %words, i64 1
  %key = bitcast i64 %threads to double
  %place = bitcast i64 %thread to double
  call void @costate_device_add_up_pair(ptr %words, i64 9, i64 0, i64 %thread, ptr %memory, double %key, double %place)
  %done = call i64 @costate_device_finish_sums(ptr %words, i64 9, ptr %ticket, i64 %thread, i64 %threads, ptr %memory, i64 2, i64 3, ptr %words)
  ret void
}
attributes #0 = { "costate-words"="4" "costate-sums" }
)");
  EXPECT_TRUE(contains(text, "shfl.sync.down.b32")) << text;
  EXPECT_TRUE(contains(text, "bar.sync")) << text;
  EXPECT_FALSE(contains(text, ".extern")) << text;
}

TEST(Nvidia, SumsGoThroughLanesAndSharedMemory) {
  for (const char *chip : {"sm_70", "sm_90"}) {
    std::string text = ptx(gridSums, chip);
    EXPECT_TRUE(contains(text, "shfl.sync.down.b32")) << text;
    EXPECT_TRUE(contains(text, "st.shared.b64")) << text;
    EXPECT_TRUE(contains(text, "ld.shared.b64")) << text;
    EXPECT_TRUE(contains(text, "bar.sync")) << text;
    EXPECT_EQ(countOf(text, "atom.acq_rel.gpu.global.add.u64"), 1u) << text;
    EXPECT_FALSE(contains(text, "fence")) << text;
    EXPECT_FALSE(contains(text, "call")) << text;
    EXPECT_TRUE(contains(text, "[520]")) << text;
    EXPECT_TRUE(contains(text, ".maxntid 512")) << text;
    EXPECT_FALSE(contains(text, ".extern")) << text;
  }
}

TEST(Nvidia, AWarpFindsItsMaximumInOneStepIfTheChipCan) {
  std::string text = ptx(warpMaximum);
  EXPECT_EQ(countOf(text, "redux.sync.max.u32"), 2u) << text;
  EXPECT_EQ(countOf(text, "vote.sync.any"), 1u) << text;
  EXPECT_TRUE(contains(text, "bar.sync")) << text;
  std::string old = ptx(warpMaximum, "sm_75");
  EXPECT_FALSE(contains(old, "redux")) << old;
  EXPECT_TRUE(contains(old, "vote.sync.any")) << old;
}

} // namespace
} // namespace costate::compiler
