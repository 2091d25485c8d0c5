/// Random kernels of kernel IR. `costate-fuzz` goes on for longer.

#include "Labels.h"
#include "SourceTree.h"
#include "fuzz/Fuzzer.h"
#include "fuzz/Shrink.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

COSTATE_LABEL("*", host);
COSTATE_LABEL("RandomIr.DerivativesAreRightOfEveryOperationEverywhere", slow);

using namespace costate;
using namespace costate::fuzz;

namespace {

std::string describe(const Finding &finding) {
  return "seed " + std::to_string(finding.seed) + ": " +
         nameOf(finding.verdict.property).str() + ": " + finding.verdict.text +
         "\n" + finding.text;
}

/// The same seeds every time; what they do not cover is not tested at all.
TEST(RandomIr, DerivativesAreRightOfEveryOperationEverywhere) {
  Fuzzer fuzzer;
  for (uint64_t seed = 1; seed <= 5000; ++seed)
    if (std::optional<Finding> finding = fuzzer.check(seed))
      FAIL() << describe(*finding);
  const Counts &counts = fuzzer.counts;
  EXPECT_GT(2 * counts.byKind[Verdict::Right], counts.kernels);
  EXPECT_LT(20 * counts.byKind[Verdict::Wild], counts.kernels);
  EXPECT_LT(20 * counts.byKind[Verdict::Racy], counts.kernels);
  EXPECT_GT(counts.judged, counts.kernels / 2);
  EXPECT_GT(10 * counts.pushing, counts.kernels);
  EXPECT_EQ(fuzzer.coverage.missing(), std::vector<std::string>());
}

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(
           test::inSourceTree("test/fuzz/corpus")))
    files.push_back(entry.path());
  return files;
}

TEST(RandomIr, CorpusIsRight) {
  EXPECT_FALSE(corpus().empty());
  for (const std::filesystem::path &path : corpus()) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    Session session;
    Verdict verdict = replay(session, text.str());
    EXPECT_TRUE(verdict.kind == Verdict::Right ||
                verdict.kind == Verdict::Refused)
        << path << ": " << nameOf(verdict.property).str() << ": "
        << verdict.text;
  }
}

TEST(RandomIr, TextsHoldKernelAndValues) {
  Session session;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Case original = generate(session.context(), seed);
    std::string text = textOf(original);
    auto module = session.parse(text);
    ASSERT_TRUE(module);
    auto memory = attachedValues(kernelOf(*module));
    ASSERT_TRUE(mlir::succeeded(memory));
    ASSERT_EQ(memory->arrays.size(), original.memory.arrays.size());
    for (size_t k = 0; k < memory->arrays.size(); ++k)
      EXPECT_EQ(memory->arrays[k].bytes, original.memory.arrays[k].bytes);
  }
}

TEST(RandomIr, SeedsGiveTheSameKernelAgain) {
  Session one, other;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(textOf(generate(one.context(), seed)),
              textOf(generate(other.context(), seed)));
}

size_t operations(const Case &subject) {
  size_t count = 0;
  ir::KernelOp kernel = subject.kernel;
  kernel.walk([&](mlir::Operation *) { ++count; });
  return count;
}

/// What cannot be shrunk further still holds all that it fails for.
TEST(RandomIr, ShrinkingKeepsTheFailure) {
  Session session;
  auto fails = [](const Case &subject) {
    return textOf(subject).find("scf.while") != std::string::npos;
  };
  int shrunk = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Case subject = generate(session.context(), seed);
    if (!fails(subject))
      continue;
    ++shrunk;
    Case smallest = shrink(session, std::move(subject), fails);
    EXPECT_TRUE(fails(smallest));
    EXPECT_LE(operations(smallest), 18u) << textOf(smallest);
  }
  EXPECT_GT(shrunk, 0);
}

} // namespace
