#include "runtime/cpu/ShadowMemory.h"

#include <gtest/gtest.h>
#include <random>
#include <set>
#include <thread>

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cpu;

namespace {
constexpr ElementUse load = ElementUse::Load, store = ElementUse::Store,
                     update = ElementUse::Update,
                     shared = ElementUse::SharedStore,
                     minimum = ElementUse::Minimum,
                     maximum = ElementUse::Maximum,
                     bits = ElementUse::CombineBits,
                     exchange = ElementUse::Exchange;

struct UseBy {
  ElementUse use;
  int64_t workItem, site = 0;
};

bool isRace(std::initializer_list<UseBy> all) {
  ElementTrace trace;
  for (UseBy one : all)
    trace = trace.after(one.use, one.workItem, one.site);
  return trace.isRace();
}

/// A launch with one watched array of `elements` elements.
struct Watched {
  explicit Watched(uint64_t elements) : slots{0, elements} {
    code.name = "watched";
    code.parameters = {{Parameter::Role::Primal, 2, 1}};
    code.watched = {0};
  }
  LaunchRequest request() const { return {&code, slots, {}}; }

  KernelCode code;
  std::vector<uint64_t> slots;
};
} // namespace

TEST(ElementTrace, OneWorkItemMayDoAnything) {
  EXPECT_FALSE(isRace({{load, 4}, {store, 4}, {update, 4}, {shared, 4}}));
}

TEST(ElementTrace, SeveralMayOnlyAllReadOrAllUpdateOrAllStoreTheSame) {
  EXPECT_FALSE(isRace({{load, 0}, {load, 1}, {load, 2}}));
  EXPECT_FALSE(isRace({{update, 0}, {update, 1}}));
  EXPECT_FALSE(isRace({{shared, 0, 7}, {shared, 1, 7}}));
  for (ElementUse other : {load, store, update, shared}) {
    EXPECT_TRUE(isRace({{store, 0}, {other, 1}}));
    EXPECT_TRUE(isRace({{other, 0}, {store, 1}}));
    EXPECT_EQ(isRace({{shared, 0}, {other, 1}}), other != shared);
  }
  EXPECT_FALSE(isRace({{update, 0}, {bits, 1}, {exchange, 2}}));
  EXPECT_TRUE(isRace({{load, 0}, {exchange, 1}}));
  EXPECT_TRUE(isRace({{minimum, 0}, {bits, 1}}));
  EXPECT_FALSE(isRace({{minimum, 0}, {minimum, 1}}));
  EXPECT_FALSE(isRace({{maximum, 0, 7}, {maximum, 1, 8}}));
  EXPECT_TRUE(isRace({{maximum, 0}, {minimum, 1}}));
  EXPECT_TRUE(isRace({{maximum, 0}, {update, 1}}));
  EXPECT_TRUE(isRace({{maximum, 0}, {load, 1}}));
  EXPECT_TRUE(isRace({{load, 0}, {update, 1}}));
  EXPECT_TRUE(isRace({{load, 0}, {load, 1}, {update, 1}}));
  EXPECT_TRUE(isRace({{shared, 0, 7}, {shared, 1, 8}}));
  EXPECT_TRUE(isRace({{shared, 0, 7}, {shared, 0, 8}, {shared, 1, 8}}));
}

TEST(ElementTrace, KeepsTheUseThatCountsMost) {
  ElementTrace trace = ElementTrace().after(load, 3, 10).after(store, 3, 11);
  EXPECT_EQ(trace.site, 11);
  trace = trace.after(load, 3, 12);
  EXPECT_EQ(trace.site, 11);
  EXPECT_EQ(trace.workItem, 3);
}

TEST(ElementTrace, FitsAWord) {
  for (int64_t workItem : {int64_t(0), ElementTrace::mostWorkItems - 1})
    for (int64_t site : {-1, 0, 2046}) {
      ElementTrace trace{13, true, workItem, site};
      EXPECT_LT(trace.pack(), uint64_t(1) << ElementTrace::bits);
      ElementTrace back = ElementTrace::unpack(trace.pack());
      EXPECT_EQ(back.uses, 13);
      EXPECT_TRUE(back.several);
      EXPECT_EQ(back.workItem, workItem);
      EXPECT_EQ(back.site, site);
    }
}

TEST(ShadowMemory, ForgetsAtTheStartOfEveryRange) {
  MemoryBudget budget(1u << 20);
  Watched watched(100);
  {
    auto memory = std::move(*ShadowMemory::make(budget, watched.request()));
    for (int64_t range = 0; range < 300; ++range) {
      memory->beginRange();
      EXPECT_FALSE(memory->add(0, 99, store, range, 5));
      auto before = memory->add(0, 99, load, range + 1, 6);
      ASSERT_TRUE(before);
      EXPECT_EQ(before->workItem, range);
      EXPECT_EQ(before->site, 5);
    }
    EXPECT_GE(budget.current(), 800u);
  }
  EXPECT_EQ(budget.current(), 0u);
}

TEST(ShadowMemory, ThatDoesNotFitIsAnError) {
  MemoryBudget budget(1u << 20);
  Watched watched(1u << 20);
  auto memory = ShadowMemory::make(budget, watched.request());
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(memory.error().text.find("argument 3"), std::string::npos);
  EXPECT_EQ(budget.current(), 0u);
}

/// Whatever the order, a race is found if and only if there is one.
TEST(ShadowMemory, FindsEveryRaceOfSeveralThreads) {
  MemoryBudget budget(1u << 20);
  Watched watched(1);
  auto memory = std::move(*ShadowMemory::make(budget, watched.request()));
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<UseBy> uses;
    ElementUse common = round % 3 == 0 ? load : round % 3 == 1 ? update : store;
    for (int i = 0; i < 4; ++i)
      uses.push_back({common, round % 3 == 2 ? 9 : i});
    if (random() % 2)
      uses[random() % 4] = {random() % 2 ? load : update,
                            int64_t(random() % 4)};
    ElementTrace all;
    std::set<int64_t> workItems;
    for (UseBy one : uses) {
      all.uses |= static_cast<uint8_t>(one.use);
      workItems.insert(one.workItem);
    }
    all.several = workItems.size() > 1;
    memory->beginRange();
    std::atomic<int> found = 0;
    std::vector<std::thread> threads;
    for (UseBy one : uses)
      threads.emplace_back([&, one] {
        if (memory->add(0, 0, one.use, one.workItem, 0))
          ++found;
      });
    for (std::thread &thread : threads)
      thread.join();
    ASSERT_EQ(found > 0, all.isRace()) << "round " << round;
  }
}
