#include "runtime/Schedule.h"

#include <gtest/gtest.h>
#include <map>

using namespace costate::runtime;

namespace {
/// The least number of steps by dynamic programming, without any formula.
uint64_t least(uint64_t steps, uint64_t slots) {
  static std::map<std::pair<uint64_t, uint64_t>, uint64_t> known;
  if (steps < 2)
    return 0;
  if (slots == 1)
    return steps * (steps - 1) / 2;
  auto [place, isNew] = known.try_emplace({steps, slots}, UINT64_MAX);
  if (!isNew)
    return place->second;
  uint64_t best = UINT64_MAX;
  for (uint64_t first = 1; first < steps; ++first)
    best = std::min(best, first + least(steps - first, slots - 1) +
                              least(first, slots));
  return known[{steps, slots}] = best;
}

/// Runs a schedule, and checks that each step is reversed once, in order, from
/// its own state, with no more states than there are slots.
class Reversal {
public:
  Reversal(size_t slots, uint64_t steps, uint64_t told = 0) : schedule(slots) {
    schedule.expect(told);
    for (uint64_t step = 0; step < steps; ++step)
      forward(step);
    end = steps;
  }
  void forward(uint64_t step) {
    for (auto choice = schedule.before(step); choice.drop || choice.keeps;
         choice = schedule.before(step)) {
      if (choice.drop)
        schedule.drop(*choice.drop);
      else
        schedule.keep(step), ++copies;
    }
    check();
    ++ran;
  }
  void backward(uint64_t atOnce = 1) {
    while (end > 0) {
      while (schedule.kept().back() >= end)
        schedule.drop(schedule.kept().size() - 1);
      Schedule::Pass pass = schedule.next(end, atOnce);
      ASSERT_LE(schedule.kept().back(), pass.to);
      ASSERT_LT(pass.to, end);
      ran += pass.to - schedule.kept().back();
      if (pass.reverses)
        end = pass.to;
      else
        schedule.keep(pass.to), ++copies;
      check();
    }
  }
  void check() const {
    ASSERT_LE(schedule.kept().size(), schedule.limit());
    ASSERT_EQ(schedule.kept().front(), 0u);
    ASSERT_TRUE(std::is_sorted(schedule.kept().begin(), schedule.kept().end()));
  }

  Schedule schedule;
  uint64_t end = 0, ran = 0, copies = 0;
};
} // namespace

TEST(Schedule, IsBestByDynamicProgramming) {
  for (uint64_t slots = 1; slots <= 8; ++slots)
    for (uint64_t steps = 1; steps <= 80; ++steps) {
      SCOPED_TRACE(std::to_string(steps) + " steps, " + std::to_string(slots));
      ASSERT_EQ(Schedule::optimum(steps, slots), least(steps, slots));
      Reversal run(slots, steps, steps);
      // The steps of the last gap run again: the first run passed their states.
      uint64_t again = steps - run.schedule.kept().back();
      run.backward();
      ASSERT_LE(run.ran, least(steps, slots) + again);
    }
}

TEST(Schedule, KnowsTheFiguresOfRevolve) {
  EXPECT_EQ(Schedule::reach(16, 3), 969u);
  EXPECT_EQ(Schedule::optimum(2048, 16), 7052u); // 3.44 of 2048
  EXPECT_EQ(Schedule::optimum(2048, 64), 4030u); // 1.97
  EXPECT_EQ(Schedule::optimum(1, 1), 0u);
  EXPECT_EQ(Schedule::optimum(1000000, 1000000), 999999u);
  EXPECT_GT(Schedule::reach(1000, 1000), uint64_t(1) << 61); // no overflow
}

TEST(Schedule, RunsWhatTheOptimumSays) {
  for (size_t slots : {2, 3, 16, 64, 500}) {
    Reversal run(slots, 2048, 2048);
    run.backward();
    EXPECT_LE(static_cast<double>(run.ran),
              1.01 * static_cast<double>(Schedule::optimum(2048, slots)) + 2)
        << slots;
  }
}

TEST(Schedule, OfUnknownLengthIsAlmostAsGood) {
  for (size_t slots : {1, 2, 3, 4, 5, 8, 16, 32, 64})
    for (uint64_t steps = 3; steps < 3000; steps += 1 + steps / 16) {
      if (slots < 3 && steps > 300)
        break;
      Reversal run(slots, steps);
      run.backward();
      ASSERT_LE(static_cast<double>(run.ran),
                1.4 * static_cast<double>(Schedule::optimum(steps, slots)) + 3)
          << steps << " steps, " << slots << " slots";
    }
}

TEST(Schedule, CopiesFewerStatesThanThereAreSteps) {
  for (size_t slots : {4, 16, 64}) {
    Reversal run(slots, 3000);
    EXPECT_LT(run.copies, 1000u) << slots;
  }
}

TEST(Schedule, GoesOnWhereMoreStepsComeThanWereTold) {
  Reversal run(8, 700, 300);
  run.backward();
  EXPECT_LE(run.ran, 2 * Schedule::optimum(700, 8));
  Reversal fewer(8, 300, 700);
  fewer.backward();
  EXPECT_LE(fewer.ran, 2 * Schedule::optimum(300, 8));
}

TEST(Schedule, DropsStatesWhenThereIsRoomForLess) {
  Reversal run(32, 500);
  run.schedule.limit(5);
  run.forward(500);
  run.end = 501;
  EXPECT_LE(run.schedule.kept().size(), 5u);
  run.backward();
  EXPECT_LE(run.ran - 501, 3 * Schedule::optimum(501, 5));
}

TEST(Schedule, ReversesSeveralStepsAtOnce) {
  Reversal one(4, 500, 500), some(4, 500, 500), all(4, 500, 500);
  one.backward();
  some.backward(10);
  all.backward(500);
  EXPECT_LT(some.ran, one.ran);
  EXPECT_EQ(all.ran, 500u);
}

TEST(Schedule, SaysWhatItWillCost) {
  for (size_t slots : {2, 7, 16})
    for (uint64_t told : {0, 400}) {
      Reversal run(slots, 400, told);
      uint64_t said = run.schedule.cost(400), before = run.ran;
      run.backward();
      EXPECT_EQ(run.ran - before, said) << slots << " " << told;
    }
}
