#include "property/Batch.h"

#include "Labels.h"
#include "property/Generate.h"
#include "property/Program.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <new>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

COSTATE_LABEL("*", host);
COSTATE_LABEL("*", slow);
COSTATE_LABEL("*", starts);

using namespace costate::property;

namespace {

/// In a process without threads, as checkBatch wants it.
class Batch : public testing::Test {
protected:
  Batch() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  BatchOptions options{.count = 40, .jobs = 3};
};

TEST_F(Batch, ProgramsThatCrashOrHangAreFindingsAndOthersGoOn) {
  options.patience = 0.5;
  options.check = [](unsigned seed) -> Verdict {
    if (seed == 5)
      std::raise(SIGKILL);
    if (seed == 7)
      pause();
    if (seed == 9)
      _exit(3);
    return {seed == 11 ? Verdict::Wrong : Verdict::Right, "its text", 2};
  };
  auto run = [&] {
    BatchCounts counts = checkBatch(options, std::cerr);
    EXPECT_FALSE(counts.good());
    EXPECT_EQ(counts.all(), 40u);
    EXPECT_EQ(counts.of(Verdict::Right), 36u);
    EXPECT_EQ(counts.of(Verdict::Wrong), 1u);
    EXPECT_EQ(counts.crashed, 2u);
    EXPECT_EQ(counts.hung, 1u);
    EXPECT_EQ(counts.differences, 74u);
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "it hangs\nseed 7");
}

/// As where the kernel of another one does not end.
TEST_F(Batch, WhatHangsBesideOthersIsJudgedAlone) {
  options.patience = 0.5;
  void *memory = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto *runs = new (memory) std::atomic<int>(0);
  options.check = [runs](unsigned seed) -> Verdict {
    if (seed == 7 && ++*runs == 1)
      pause();
    return {};
  };
  auto run = [&] {
    BatchCounts counts = checkBatch(options, std::cerr);
    EXPECT_TRUE(counts.good());
    EXPECT_EQ(counts.of(Verdict::Right), 40u);
    EXPECT_EQ(counts.hung, 0u);
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "hangs beside others; alone it is right\nseed 7");
}

TEST_F(Batch, ProgramsThatHaveNotEndedInTimeAreNamed) {
  options.seconds = 1;
  options.grace = 0.3;
  options.check = [](unsigned seed) -> Verdict {
    if (seed == 7)
      pause();
    return {};
  };
  auto run = [&] {
    BatchCounts counts = checkBatch(options, std::cerr);
    EXPECT_EQ(counts.unfinished, 1u);
    EXPECT_EQ(counts.hung + counts.crashed, 0u);
    EXPECT_EQ(counts.of(Verdict::Right) + 1, counts.all());
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "seed 7 has not ended in time");
}

TEST_F(Batch, ASignalEndsTheTimeAndNoProgramForIt) {
  for (int number : {SIGINT, SIGTERM}) {
    options.check = [&](unsigned seed) -> Verdict {
      if (seed == 7) {
        kill(0, number); // as a terminal does, to all
        pause();
      }
      return {};
    };
    auto run = [&] {
      setpgid(0, 0);
      std::signal(number, SIG_DFL); // what is ignored stays so
      BatchCounts counts = checkBatch(options, std::cerr);
      EXPECT_GE(counts.unfinished, 1u);
      EXPECT_EQ(counts.hung + counts.crashed, 0u);
      std::exit(HasFailure());
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0), "seed 7 has not ended");
  }
}

bool hasLoop(const std::string &program) {
  return program.find("(for ") != std::string::npos;
}

/// Of the first program with a loop: what becomes of it alone.
struct Smaller {
  explicit Smaller(const BatchOptions &options) {
    unsigned seed = 1;
    while (!hasLoop(print(generate(seed))))
      ++seed;
    std::ostringstream out;
    verdict = checkApart(options, seed, out);
    text = out.str().substr(out.str().find("smallest"));
    isSmaller = text.size() < print(generate(seed)).size() / 2;
  }
  Verdict verdict;
  std::string text;
  bool isSmaller;
};

TEST_F(Batch, AProgramThatCrashesAloneIsMadeSmaller) {
  options.checkProgram = [](const Node &program, unsigned) -> Verdict {
    if (hasLoop(print(program)))
      std::raise(SIGKILL);
    return {};
  };
  auto run = [&] {
    Smaller found(options);
    EXPECT_EQ(found.verdict.kind, Verdict::Wrong);
    EXPECT_TRUE(found.isSmaller && hasLoop(found.text)) << found.text;
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST_F(Batch, SeveralAtATimeFindTheSameSmallestProgram) {
  options.checkProgram = [](const Node &program, unsigned) -> Verdict {
    return {hasLoop(print(program)) ? Verdict::Wrong : Verdict::Right};
  };
  auto run = [&] {
    Smaller several(options);
    options.jobs = 1;
    EXPECT_EQ(several.text, Smaller(options).text);
    EXPECT_TRUE(several.isSmaller);
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST_F(Batch, AndSoIsOneThatHangs) {
  options.patience = 0.05;
  options.checkProgram = [](const Node &, unsigned) -> Verdict {
    pause();
    return {};
  };
  auto run = [&] {
    Smaller found(options);
    EXPECT_EQ(found.verdict.text, "it hangs");
    EXPECT_TRUE(found.isSmaller) << found.text;
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST_F(Batch, NoProgramsAreNoFailure) {
  options.check = [](unsigned) -> Verdict { return {}; };
  options.count = 0;
  auto run = [&] {
    BatchCounts counts = checkBatch(options, std::cerr);
    std::exit(!counts.good() || counts.all() != 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST_F(Batch, ADeviceThatIsNotThereIsSaid) {
  auto run = [] {
    EXPECT_EQ(whyNoDevice("cpu"), "");
    EXPECT_NE(whyNoDevice("abacus").find("abacus"), std::string::npos);
    std::exit(HasFailure());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

} // namespace
