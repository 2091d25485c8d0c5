#include "compiler/RowPrefetch.h"

#include "conversion/KernelToLLVM/Runtime.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

using namespace llvm;

namespace costate::compiler {
namespace {

/// A loop over a row of `x`, each row of which has n elements.
std::string loop(const std::string &body) {
  return "declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, "
         "<16 x float>)\n"
         "define void @f(ptr %x, ptr %y, i64 %row, i64 %n, <16 x i1> %m) {\n"
         "entry:\n"
         "  %first = mul i64 %row, %n\n"
         "  %second = add i64 %first, %n\n"
         "  br label %body\n"
         "body:\n"
         "  %i = phi i64 [0, %entry], [%next, %body]\n"
         "  %here = add i64 %first, %i\n"
         "  %below = add i64 %second, %i\n"
         "  %a = getelementptr float, ptr %x, i64 %here\n"
         "  %b = getelementptr float, ptr %x, i64 %below\n"
         "  %c = getelementptr float, ptr %y, i64 %here\n" +
         body +
         "  %more = icmp slt i64 %next, %n\n"
         "  br i1 %more, label %body, label %end\n"
         "end:\n  ret void\n}\n";
}

constexpr const char *wide = "  %next = add i64 %i, 16\n",
                     *narrow = "  %next = add i64 %i, 1\n",
                     *longest = "  %next = add i64 %i, 48\n";

/// Sixteen work items at a time, each of which goes through the rows of `x`,
/// and for each row through `body`.
std::string rowsOfLanes(const std::string &body, const std::string &stride) {
  return "declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, "
         "<16 x float>)\n"
         "define void @f(ptr %x, i64 %n, <16 x i1> %m) {\n"
         "entry:\n  br label %items\n"
         "items:\n"
         "  %i = phi i64 [0, %entry], [%nexti, %enditem]\n"
         "  br label %rows\n"
         "rows:\n"
         "  %row = phi i64 [0, %items], [%nextrow, %endrow]\n"
         "  %first = mul i64 %row, " +
         stride +
         "\n"
         "  %here = add i64 %first, %i\n"
         "  %a = getelementptr float, ptr %x, i64 %here\n" +
         body +
         "  br label %columns\n"
         "columns:\n"
         "  %column = phi i64 [0, %rows], [%nextcolumn, %columns]\n"
         "  %there = add i64 %column, %i\n"
         "  %b = getelementptr float, ptr %x, i64 %there\n"
         "  %w = load <16 x float>, ptr %b\n"
         "  %nextcolumn = add i64 %column, %n\n"
         "  %morecolumns = icmp slt i64 %nextcolumn, %first\n"
         "  br i1 %morecolumns, label %columns, label %endrow\n"
         "endrow:\n"
         "  store <16 x float> %w, ptr %b\n"
         "  %nextrow = add i64 %row, 1\n"
         "  %morerows = icmp slt i64 %nextrow, %n\n"
         "  br i1 %morerows, label %rows, label %enditem\n"
         "enditem:\n"
         "  %nexti = add i64 %i, 16\n"
         "  %moreitems = icmp slt i64 %nexti, %n\n"
         "  br i1 %moreitems, label %items, label %end\n"
         "end:\n  ret void\n}\n";
}

/// What is prefetched, in the order of the loop.
std::vector<std::string> prefetchedIn(const std::string &text, bool isSplit) {
  LLVMContext context;
  SMDiagnostic diagnostic;
  auto module = parseAssemblyString(text, diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  if (!module)
    return {};
  Function &function = *module->getFunction("f");
  if (isSplit)
    function.addFnAttr(conversion::threeLoopsAttr);
  PassBuilder builder;
  FunctionAnalysisManager analyses;
  builder.registerFunctionAnalyses(analyses);
  PrefetchRows().run(function, analyses);
  std::vector<std::string> places;
  for (Instruction &one : instructions(function))
    if (auto *call = dyn_cast<IntrinsicInst>(&one);
        call && call->getIntrinsicID() == Intrinsic::prefetch) {
      APInt ahead(64, 0);
      const Value *place =
          call->getArgOperand(0)->stripAndAccumulateConstantOffsets(
              module->getDataLayout(), ahead, /*AllowNonInbounds=*/true);
      places.push_back(
          (place->getName() + " + " + Twine(ahead.getSExtValue())).str());
    }
  return places;
}

std::vector<std::string> prefetched(const std::string &body,
                                    bool isSplit = true) {
  return prefetchedIn(loop(body), isSplit);
}

constexpr const char *twoRows = "  %p = load <16 x float>, ptr %a\n"
                                "  %q = load <16 x float>, ptr %b\n"
                                "  %r = fadd <16 x float> %p, %q\n"
                                "  store <16 x float> %r, ptr %c\n";
using Places = std::vector<std::string>;

TEST(RowPrefetch, OfSeveralRowsTheForemostIsFetched) {
  EXPECT_EQ(prefetched(std::string(twoRows) + wide), Places{"b + 2048"});
}

TEST(RowPrefetch, SoIsWhatIsAddedTo) {
  EXPECT_EQ(prefetched(std::string(twoRows) +
                       "  %s = load <16 x float>, ptr %c\n" + wide),
            (Places{"b + 2048", "c + 2048"}));
}

TEST(RowPrefetch, MaskedRowsAreFetchedLikeOthers) {
  EXPECT_EQ(prefetched("  %p = call <16 x float> "
                       "@llvm.masked.load.v16f32.p0(ptr %b, <16 x i1> %m, "
                       "<16 x float> zeroinitializer)\n"
                       "  %q = load <16 x float>, ptr %a\n" +
                       std::string(wide)),
            Places{"b + 2048"});
}

TEST(RowPrefetch, EachLineOfAnIterationIsFetched) {
  EXPECT_EQ(prefetched(std::string(twoRows) + longest),
            (Places{"b + 2048", "b + 2112", "b + 2176"}));
}

TEST(RowPrefetch, OneElementAtATimeIsLeftAlone) {
  EXPECT_EQ(prefetched(std::string(twoRows) + narrow), Places{});
}

TEST(RowPrefetch, SoAreLoopsThatAreNoneOfAStencil) {
  EXPECT_EQ(prefetched(std::string(twoRows) + wide, /*isSplit=*/false),
            Places{});
}

constexpr const char *one = "  %v = load <16 x float>, ptr %a\n";

TEST(RowPrefetch, LanesFetchTheirRowsForTheNextOnes) {
  EXPECT_EQ(prefetchedIn(rowsOfLanes(one, "%n"), /*isSplit=*/false),
            Places{"a + 64"});
  EXPECT_EQ(prefetchedIn(rowsOfLanes("  %v = call <16 x float> "
                                     "@llvm.masked.load.v16f32.p0(ptr %a, "
                                     "<16 x i1> %m, <16 x float> "
                                     "zeroinitializer)\n",
                                     "%n"),
                         /*isSplit=*/false),
            Places{"a + 64"});
}

TEST(RowPrefetch, RowsThatAreNeighboursAreLeftToTheProcessor) {
  EXPECT_EQ(prefetchedIn(rowsOfLanes(one, "64"), /*isSplit=*/false), Places{});
}

TEST(RowPrefetch, SoAreElementsOfOneLane) {
  EXPECT_EQ(prefetchedIn(rowsOfLanes("  %v = load float, ptr %a\n", "%n"),
                         /*isSplit=*/false),
            Places{});
}

} // namespace
} // namespace costate::compiler
