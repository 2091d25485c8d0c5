/// Random kernels: interpreted and compiled, primal and derivatives. With
/// COSTATE_FUZZ_SECONDS for longer, from COSTATE_FUZZ_SEED on.

#include "SourceTree.h"
#include "property/Check.h"
#include "property/Emit.h"
#include "property/Generate.h"
#include "property/Shrink.h"
#include "property/Vocabulary.h"

#include "Labels.h"
#include "syntax/Trace.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

COSTATE_LABEL("*", repeats);
COSTATE_LABEL("*.AgreeForLonger", host);
COSTATE_LABEL("*.AgreeInLanes", host);

using namespace costate::property;

namespace {

std::string describe(const Node &program, unsigned seed,
                     const Verdict &verdict) {
  std::ostringstream text;
  text << verdict.text << "\nseed " << seed << "\n" << print(program);
  return text.str();
}

/// Fails with the smallest program that `check` finds wrong in the same way.
template <class F>
void reportWrong(const Node &program, unsigned seed, const Verdict &verdict,
                 F check) {
  std::string kind = kindOf(verdict);
  Node smallest = shrink(program, [&](const Node &candidate) {
    Verdict other = check(candidate, seed);
    return other.kind == Verdict::Wrong && kindOf(other) == kind;
  });
  ADD_FAILURE() << describe(smallest, seed, check(smallest, seed));
}

/// What has become of the programs of a run; used by several threads.
class Counts {
public:
  void add(const Verdict &verdict, const Coverage &covered) {
    std::lock_guard lock(mutex);
    ++kinds[verdict.kind];
    differences += verdict.differences;
    coverage.add(covered);
  }

  int of(Verdict::Kind kind) const { return kinds[kind]; }
  int all() const { return std::accumulate(kinds.begin(), kinds.end(), 0); }

  void print(std::ostream &out) const {
    out << all() << " programs: " << of(Verdict::Right) << " right, "
        << of(Verdict::Refused) << " without gradient, " << of(Verdict::Racing)
        << " racing, " << of(Verdict::Wild)
        << " with values too large for derivatives, " << of(Verdict::Invalid)
        << " invalid, " << of(Verdict::Wrong) << " wrong; " << differences
        << " entries judged by differences; discarded: "
        << 100.0 * (all() - of(Verdict::Right)) / std::max(all(), 1) << " %\n";
  }

  int differences = 0;
  Coverage coverage;

private:
  std::mutex mutex;
  std::array<int, 6> kinds = {};
};

void checkSeed(unsigned seed, Counts &counts) {
  Node program = generate(seed);
  Coverage coverage;
  Verdict verdict = check(program, seed, &coverage);
  counts.add(verdict, coverage);
  EXPECT_NE(verdict.kind, Verdict::Invalid) << describe(program, seed, verdict);
  if (verdict.kind == Verdict::Wrong)
    reportWrong(program, seed, verdict, [](const Node &candidate, unsigned s) {
      return check(candidate, s);
    });
}

/// False if lowering is wrong.
bool checkStatements(unsigned seed) {
  Node program = generate(seed);
  Verdict verdict = checkLowering(program, seed);
  EXPECT_NE(verdict.kind, Verdict::Invalid) << describe(program, seed, verdict);
  if (verdict.kind == Verdict::Wrong)
    reportWrong(program, seed, verdict, checkLowering);
  return verdict.kind != Verdict::Wrong;
}

/// Checks seeds from `first` on, on all cores, while `goesOn(seed)`.
template <class F, class Check>
void checkSeeds(unsigned first, F goesOn, Check checkOne) {
  std::atomic<unsigned> next = first;
  auto work = [&] {
    for (unsigned seed; goesOn(seed = next++);)
      checkOne(seed);
  };
  std::vector<std::jthread> threads;
  for (unsigned k = 0; k < std::thread::hardware_concurrency(); ++k)
    threads.emplace_back(work);
}

/// The number in an environment variable, or 0.
unsigned fromEnvironment(const char *name) {
  const char *text = std::getenv(name);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
}

TEST(RandomKernel, Agree) {
  Counts counts;
  checkSeeds(
      1, [](unsigned seed) { return seed <= 160; },
      [&](unsigned seed) { checkSeed(seed, counts); });
  counts.print(std::cout);
  EXPECT_GT(10 * counts.of(Verdict::Right), 7 * counts.all());
  EXPECT_GT(counts.differences, 10 * counts.of(Verdict::Right));
}

TEST(RandomKernel, AgreeWithTheirStatements) {
  checkSeeds(1, [](unsigned seed) { return seed <= 1000; }, checkStatements);
}

TEST(RandomKernel, AgreeInLanes) {
  checkSeeds(
      1, [](unsigned seed) { return seed <= 24; },
      [](unsigned seed) {
        Node program = generate(seed);
        Verdict verdict = checkLanes(program, seed);
        if (verdict.kind == Verdict::Wrong)
          reportWrong(program, seed, verdict, checkLanes);
      });
}

TEST(RandomKernel, AgreeInBudgets) {
  checkSeeds(
      1, [](unsigned seed) { return seed <= 24; },
      [](unsigned seed) {
        Node program = generate(seed);
        Verdict verdict = checkBudgets(program, seed);
        if (verdict.kind == Verdict::Wrong)
          reportWrong(program, seed, verdict, checkBudgets);
      });
}

TEST(RandomKernel, AgreeForLonger) {
  using Clock = std::chrono::steady_clock;
  unsigned seconds = fromEnvironment("COSTATE_FUZZ_SECONDS");
  if (seconds == 0)
    GTEST_SKIP() << "COSTATE_FUZZ_SECONDS is not set";
  unsigned first = std::max(fromEnvironment("COSTATE_FUZZ_SEED"), 1000u);
  Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  Counts counts;
  std::atomic<int> wrong = 0;
  checkSeeds(
      first,
      [&](unsigned) {
        return Clock::now() < end && counts.of(Verdict::Wrong) + wrong < 10;
      },
      [&](unsigned seed) {
        checkSeed(seed, counts);
        for (unsigned k = 0; k < 4; ++k) // lowering needs no code
          wrong += !checkStatements(1'000'000 + 4 * seed + k);
      });
  counts.coverage.print(std::cout);
  std::cout << "seeds from " << first << " on: ";
  counts.print(std::cout);
}

TEST(RandomKernel, CorpusAgrees) {
  std::filesystem::path corpus =
      costate::test::inSourceTree("test/property/corpus.txt");
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

/// The generator makes everything that it is said to make, and nothing else.
TEST(RandomKernel, ProgramsUseTheWholeLanguage) {
  std::vector<std::string> all = everything();
  std::set<std::string> missing(all.begin(), all.end());
  for (unsigned seed = 1; seed <= 1600; ++seed) {
    Uses uses;
    emit(generate(seed), {}, &uses);
    for (auto &[thing, where] : uses) {
      EXPECT_NE(std::ranges::find(all, thing), all.end()) << thing;
      missing.erase(thing);
    }
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

TEST(RandomKernel, SumsUnderChaosAreSetAside) {
  Node program = parse(R"(
    (program 13000
      (range (i 13000)
        (update out 0 (add (sin (cast i64 i)) -1.2)))
      (range (j 13000)
        (for k 0 4 1
          (store u (add k 1) j (sin (mul (load out 0) (load u k j)))))))
  )")[0];
  EXPECT_EQ(check(program, 1).kind, Verdict::Wild);
}

/// Sums over work items whose last bits 16 partial sums, or another order of
/// threads, change; what is made of them is ill-conditioned.
TEST(RandomKernel, RoundingsOfSumsAreNoFaults) {
  struct {
    unsigned seed;
    const char *text;
  } const programs[] = {{97027638, R"(
    (program 1100
      (range (i0 791) (update s 0.7))
      (for k7 0 4 1
        (store u (add k7 1) 615
          (sin (rem (norm2 (vec3 0 1 (load v (idx 3 (load g 384)) k7)))
            (add 1.61 (rem (norm (vec3 0.7 0.7 (load s)))
              (load u k7 615))))))))
  )"},
                        {97026111, R"(
    (program 13000
      (range (i0 3 j1 3842 k2 3)
        (if (eq f64 -1.296290 (load u k2 i0)) (then (return)))
        (update out i0 -0.296290))
      (var t11 f64 (most i10 3 (load v 0.7 i10)))
      (var t12 f64 (sin (mul t11 (load out 0.7))))
      (update s t12))
  )"}};
  for (auto [seed, text] : programs) {
    Verdict verdict = checkLanes(parse(text)[0], seed);
    EXPECT_EQ(verdict.kind, Verdict::Right) << verdict.text;
  }
}

/// Versions of what the ranges of a loop overwrite are not kept: there is a
/// gradient of memory that is as it needs it, and else none.
TEST(RandomKernel, GradientsOfIntactMemoryAreComparedToo) {
  const char *kernel = R"(
    (program 4
      (var n i64 2)
      (while 5 (lt i64 n 4)
        (for k 0 4 1
          (range (i 2)
            (store u STEP i (sin (load u k i)))))
        (add n 1)))
  )";
  for (const char *step : {"(add k 1)", "k"}) {
    std::string text = kernel;
    text.replace(text.find("STEP"), 4, step);
    Verdict verdict = check(parse(text)[0], 1);
    EXPECT_EQ(verdict.kind, Verdict::Refused) << verdict.text;
  }
}

/// A product that is 0 but for rounding decides a branch, at x[3] otherwise
/// than around it.
TEST(RandomKernel, APointThatBranchesApartIsSetAside) {
  Node program = parse(R"(
    (program 4
      (range (i0 4)
        (var t2 f64 (add (norm2 (vec3 (load z i0) (load v (idx 3 (cast i32 (load n 3))) i0) (load z i0))) (load x i0)))
        (mat a3 (mat4 t2 t2 t2 t2))
        (if (ne i64 0.5 i0)
          (then
            (if (gt f64 (entry a3 i0 i0) (dot (cross (vec3 t2 t2 t2) (vec3 t2 t2 (load z i0))) (vscale t2 (vec3 t2 t2 t2))))
              (elif t2 (mset a3 (outer (vec3 t2 t2 t2) (vec3 t2 t2 t2)))))
            (update y i0 (trace a3)))))
      (update s -0.056290))
  )")[0];
  Verdict verdict = check(program, 104000429);
  EXPECT_EQ(verdict.kind, Verdict::Right) << verdict.text;
}

TEST(RandomKernel, ProgramsReadAsTheyPrint) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Node program = generate(seed);
    std::vector<Node> read = parse(print(program));
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0], program);
  }
}

/// Whether a candidate that the shrinker makes can be traced.
bool isProgram(const Node &candidate) {
  try {
    return !traced(candidate)->failure;
  } catch (const InvalidProgram &) {
    return false;
  }
}

/// What cannot be shrunk further still holds all that it fails for.
TEST(RandomKernel, ShrinkingKeepsTheFailure) {
  auto fails = [](const Node &program) {
    return print(program).find("update") != std::string::npos &&
           isProgram(program);
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
