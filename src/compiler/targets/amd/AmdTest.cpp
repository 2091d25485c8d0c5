#include "compiler/targets/amd/AmdCode.h"

#include "Labels.h"
#include "base/AmdChip.h"
#include "base/DeviceSymbol.h"

#include <gtest/gtest.h>
#include <set>

COSTATE_LABEL("Amd.CodeAssembles*", slow);
COSTATE_LABEL("Amd.FunctionsAssemble*", slow);
COSTATE_LABEL("Amd.TilesHave*", slow);

namespace costate::compiler {
namespace {

std::string codeObject(const std::string &ir, const std::string &chip) {
  Result<std::string> object = emitForAmd(ir, chip);
  EXPECT_TRUE(object.ok()) << chip << ": " << object.error().text;
  return object ? *object : "";
}

std::string textOf(const std::string &ir, const std::string &chip) {
  Result<std::string> text = disassemble(codeObject(ir, chip));
  EXPECT_TRUE(text.ok()) << text.error().text;
  return text ? *text : "";
}

/// LLVM's assembler, for this chip alone, makes the same of the text.
void expectSameAssembled(const std::string &object, const char *chip) {
  Result<std::string> text = disassemble(object);
  ASSERT_TRUE(text.ok()) << text.error().text;
  EXPECT_FALSE(contains(*text, ".byte")) << *text;
  Result<std::string> bytes = assembleForAmd(*text, chip);
  ASSERT_TRUE(bytes.ok()) << chip << ": " << bytes.error().text;
  EXPECT_TRUE(*bytes == instructionsOf(object)) << chip << "\n" << *text;
}

void expectFailure(const std::string &ir, const std::string &part) {
  Result<std::string> object = emitForAmd(ir, "gfx942");
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.error().code, ErrorCode::Internal);
  EXPECT_TRUE(contains(object.error().text, part)) << object.error().text;
}

const std::string squarePlusOne =
    "  %s = fmul double %x, %x\n  %y = fadd double %s, 1.0\n";

TEST(Amd, ChipsSayHowManyLanesAWarpHas) {
  EXPECT_EQ(parseAmdChip("gfx90a")->lanes, 64);
  EXPECT_EQ(parseAmdChip("gfx942")->lanes, 64);
  EXPECT_EQ(parseAmdChip("gfx1030")->lanes, 32);
  EXPECT_EQ(parseAmdChip("gfx1201")->lanes, 32);
  EXPECT_EQ(amdChip("gfx90a:sramecc+:xnack-"), "gfx90a");
  for (const char *other : {"gfx803", "gfx", "gfx1", "gfx9-generic", "sm_90",
                            "gfx90a:xnack-", "gfx20000"})
    EXPECT_FALSE(parseAmdChip(other)) << other;
}

TEST(Amd, KernelsTakeTheirWordsByValue) {
  std::string ir = withNumber("double", squarePlusOne, "", 7);
  for (const char *chip : amdChips) {
    auto facts = factsOf(codeObject(ir, chip));
    ASSERT_TRUE(facts.ok()) << facts.error().text;
    ASSERT_EQ(facts->size(), 1u);
    const KernelFacts &kernel = facts->front();
    EXPECT_EQ(kernel.name, deviceSymbol("f.range0"));
    EXPECT_EQ(kernel.argumentBytes, 7 * 8u);
    EXPECT_EQ(kernel.lanes, static_cast<uint64_t>(parseAmdChip(chip)->lanes));
    EXPECT_EQ(kernel.spilledVgprs + kernel.spilledSgprs, 0u);
    EXPECT_EQ(kernel.privateBytes, 0u);
    EXPECT_EQ(kernel.sharedBytes, 0u);
    EXPECT_EQ(kernel.largestBlock, 1024u);
  }
}

TEST(Amd, CodeAssemblesToTheSameBytes) {
  for (const std::string &ir :
       {withNumber("double", squarePlusOne), std::string(sums),
        std::string(gridSums), warpMaximum, std::string(sortedTiles),
        std::string(blockSums)})
    for (const char *chip : amdChips)
      expectSameAssembled(codeObject(ir, chip), chip);
}

TEST(Amd, FunctionsAssembleToTheSameBytesAndSpillNothing) {
  for (const Function &function : functions)
    for (bool isF64 : {false, true})
      for (const char *chip : {"gfx942", "gfx1100"}) {
        if (!isCalled(function))
          continue;
        std::string object = codeObject(callOf(function, isF64), chip);
        expectSameAssembled(object, chip);
        for (const KernelFacts &kernel : *factsOf(object))
          EXPECT_EQ(kernel.spilledVgprs + kernel.spilledSgprs, 0u)
              << function.operation << " " << chip;
      }
}

TEST(Amd, TilesHaveAKernelForEachPlaceThatIsKnown) {
  for (const char *chip : amdChips) {
    auto facts = factsOf(codeObject(sortedTiles, chip));
    ASSERT_TRUE(facts.ok()) << facts.error().text;
    std::set<std::string> names;
    for (const KernelFacts &kernel : *facts) {
      names.insert(kernel.name);
      EXPECT_EQ(kernel.largestBlock, 256u) << kernel.name;
      EXPECT_EQ(kernel.argumentBytes, 40 * 8u) << kernel.name;
    }
    EXPECT_EQ(
        names,
        (std::set{deviceSymbol("tiles"), deviceSymbol("tiles.shared"),
                  deviceSymbol("tiles.drain"), deviceSymbol("tiles.sort")}));
  }
}

TEST(Amd, BlocksKeepSumsInTheirMemory) {
  for (const char *chip : amdChips)
    EXPECT_EQ(factsOf(codeObject(blockSums, chip))->front().sharedBytes,
              2 * 256 * 8u);
}

/// In one operation where the chip has it, else by compare-exchange.
TEST(Amd, FloatsAreAddedAtomically) {
  auto added = [](const char *type, const char *chip) {
    return textOf(
        withNumber(type, std::string("  %y = atomicrmw fadd ptr %p, ") + type +
                             " %x monotonic\n"),
        chip);
  };
  for (const char *chip : {"gfx90a", "gfx942", "gfx1100", "gfx1201"})
    EXPECT_TRUE(contains(added("float", chip), "global_atomic_add_f32"))
        << chip;
  for (const char *chip : {"gfx90a", "gfx942"})
    EXPECT_TRUE(contains(added("double", chip), "global_atomic_add_f64"))
        << chip;
  for (const char *chip : {"gfx1030", "gfx1100", "gfx1201"})
    EXPECT_TRUE(contains(added("double", chip), "global_atomic_cmpswap"))
        << chip << added("double", chip);
  EXPECT_TRUE(contains(added("float", "gfx1030"), "global_atomic_cmpswap"));
}

TEST(Amd, NothingIsContracted) {
  for (const char *chip : amdChips) {
    std::string text = textOf(withNumber("double", squarePlusOne), chip);
    EXPECT_TRUE(contains(text, "v_mul_f64")) << text;
    EXPECT_TRUE(contains(text, "v_add_f64")) << text;
    EXPECT_FALSE(contains(text, "fma")) << text;
  }
}

TEST(Amd, OthersAreRefusedByName) {
  Result<std::string> object =
      emitForAmd(withNumber("double", squarePlusOne), "gfx9ff");
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.error().text, "there is no AMD chip `gfx9ff`");
  expectFailure(withNumber("float", "  %y = call float @unknown(float %x)\n",
                           "declare float @unknown(float)\n"),
                "there is no code for AMD GPUs for `unknown`");
  expectFailure(withNumber("float",
                           "  %y = call float @llvm.exp.f32(float %x)\n",
                           "declare float @llvm.exp.f32(float)\n"),
                "`llvm.exp.f32`");
}

} // namespace
} // namespace costate::compiler
