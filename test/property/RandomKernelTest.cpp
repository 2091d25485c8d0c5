/// Random kernels: the gradient of each against forward mode, differences, and
/// itself. COSTATE_FUZZ_SECONDS goes on for longer, from COSTATE_FUZZ_SEED on.

#include "property/Check.h"
#include "property/Generate.h"
#include "property/Shrink.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <sstream>

using namespace costate::property;

namespace {

std::string describe(const Node &program, unsigned seed,
                     const Verdict &verdict) {
  std::ostringstream text;
  text << verdict.text << "\nseed " << seed << "\n" << print(program);
  return text.str();
}

/// How a wrong program is wrong, without numbers.
std::string kindOf(const Verdict &verdict) {
  return verdict.text.substr(0, verdict.text.find(':'));
}

/// Fails with the smallest program that is wrong in the same way.
void reportWrong(const Node &program, unsigned seed, const Verdict &verdict) {
  std::string kind = kindOf(verdict);
  Node smallest = shrink(program, [&](const Node &candidate) {
    Verdict other = check(candidate, seed);
    return other.kind == Verdict::Wrong && kindOf(other) == kind;
  });
  ADD_FAILURE() << describe(smallest, seed, check(smallest, seed));
}

struct Counts {
  int right = 0, refused = 0, differences = 0, all = 0;

  void add(const Verdict &verdict) {
    ++all;
    right += verdict.kind == Verdict::Right;
    refused += verdict.kind == Verdict::Refused;
    differences += verdict.differences;
  }
};

void checkSeed(unsigned seed, Counts &counts) {
  Node program = generate(seed);
  Verdict verdict = check(program, seed);
  counts.add(verdict);
  EXPECT_NE(verdict.kind, Verdict::Invalid) << describe(program, seed, verdict);
  if (verdict.kind == Verdict::Wrong)
    reportWrong(program, seed, verdict);
}

/// The number in an environment variable, or 0.
unsigned fromEnvironment(const char *name) {
  const char *text = std::getenv(name);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
}

TEST(RandomKernel, GradientsAgree) {
  Counts counts;
  for (unsigned seed = 1; seed <= 40; ++seed)
    checkSeed(seed, counts);
  EXPECT_GT(2 * counts.right, counts.all);
  EXPECT_GT(counts.differences, 20 * counts.right);
}

TEST(RandomKernel, GradientsAgreeForLonger) {
  using Clock = std::chrono::steady_clock;
  unsigned seconds = fromEnvironment("COSTATE_FUZZ_SECONDS");
  if (seconds == 0)
    GTEST_SKIP() << "COSTATE_FUZZ_SECONDS is not set";
  unsigned first = std::max(fromEnvironment("COSTATE_FUZZ_SEED"), 1000u);
  Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  Counts counts;
  for (unsigned seed = first; Clock::now() < end; ++seed)
    checkSeed(seed, counts);
  std::cout << counts.all << " programs from seed " << first
            << " on: " << counts.right << " right, " << counts.refused
            << " refused, " << counts.differences
            << " entries judged by differences\n";
}

TEST(RandomKernel, CorpusAgrees) {
  std::filesystem::path corpus(__FILE__);
  corpus.replace_filename("corpus.txt");
  std::ifstream file(corpus);
  ASSERT_TRUE(file) << corpus;
  std::stringstream text;
  text << file.rdbuf();
  std::vector<Node> programs = parse(text.str());
  EXPECT_FALSE(programs.empty());
  for (const Node &program : programs)
    for (unsigned seed : {4, 5}) {
      Verdict verdict = check(program, seed);
      EXPECT_EQ(verdict.kind, Verdict::Right)
          << describe(program, seed, verdict);
    }
}

TEST(RandomKernel, ProgramsReadAsTheyPrint) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Node program = generate(seed);
    std::vector<Node> read = parse(print(program));
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0], program);
  }
}

/// What cannot be shrunk further still holds all that it fails for.
TEST(RandomKernel, ShrinkingKeepsTheFailure) {
  auto fails = [](const Node &program) {
    return print(program).find("update") != std::string::npos;
  };
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Node program = generate(seed);
    if (!fails(program))
      continue;
    Node smallest = shrink(program, fails);
    EXPECT_TRUE(fails(smallest));
    EXPECT_LE(countStatements(smallest), 6u) << print(smallest);
  }
}

} // namespace
