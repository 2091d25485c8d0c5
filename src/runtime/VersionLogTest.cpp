#include "runtime/VersionLog.h"
#include "runtime/WatchedArrayTest.h"
#include "runtime/simt/SimtDevice.h"

#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace costate;
using namespace costate::runtime;
using Values = std::vector<double>;
using Purpose = VersionLog::Purpose;

namespace {
class Versions : public WatchedArrayTest {
protected:
  static Box slot(const ArrayStorage &array, int64_t index) {
    return slots(array, index, index + 1);
  }

  VersionLog log{Purpose::Versions};
};
} // namespace

TEST_F(Versions, OnlyWantedElementsThatAreOverwrittenAreCopied) {
  EXPECT_TRUE(write(*x, whole, 1).ok());
  log.want(x, slot(*x, 2));
  EXPECT_TRUE(write(*x, slot(*x, 1), 2).ok());
  EXPECT_EQ(log.bytes(), 0u);
  EXPECT_TRUE(write(*x, whole, 3).ok());
  EXPECT_EQ(log.bytes(), 16u);
  EXPECT_TRUE(write(*x, whole, 4).ok()); // nobody wants the 3
  EXPECT_EQ(log.bytes(), 16u);
  ASSERT_EQ(log.copies().size(), 1u);
  EXPECT_EQ(*log.copies()[0]->writer, "the test");
  EXPECT_EQ(boxText(log.copies()[0]->elements[0]), "[2, 0:2]");
}

TEST_F(Versions, WhatStandsInOneCopyIsFound) {
  auto contentsAt = [&](uint64_t time) {
    std::byte *found = log.findArray(*x, whole, time);
    Values values(found ? 8 : 0);
    if (found)
      EXPECT_TRUE(device->download(values.data(), {found, 64}).ok());
    return values;
  };
  EXPECT_TRUE(write(*x, whole, 1).ok());
  uint64_t ones = log.want(x, whole);
  EXPECT_TRUE(write(*x, whole, 2).ok());
  uint64_t twos = log.want(x, whole);
  EXPECT_TRUE(write(*x, slot(*x, 1), 3).ok());
  EXPECT_TRUE(write(*x, whole, 4).ok());
  uint64_t fours = log.want(x, whole);
  log.beginUse(/*observed=*/false);
  EXPECT_EQ(contentsAt(fours), Values(8, 4));
  EXPECT_EQ(contentsAt(twos), Values());
  EXPECT_EQ(contentsAt(ones), Values(8, 1));
  EXPECT_TRUE(log.rewind(*x, twos).ok());
  EXPECT_EQ(contentsAt(twos), Values(8, 2));
  EXPECT_EQ(log.findArray(*x, whole, twos), x->buffer.address);
  EXPECT_EQ(contentsAt(ones), Values(8, 1));
  log.restore();
  log.endUse();
  EXPECT_EQ(contents(*x), Values(8, 4));
}

TEST_F(Versions, APartThatStandsInOneCopyIsFound) {
  auto valueAt = [&](int64_t index, uint64_t time) {
    auto *found =
        reinterpret_cast<double *>(log.findArray(*x, slot(*x, index), time));
    return found ? found[index * 2 + 1] : -1;
  };
  EXPECT_TRUE(write(*x, whole, 1).ok());
  uint64_t time = log.want(x, whole);
  for (int64_t index : {2, 1, 0})
    EXPECT_TRUE(write(*x, slot(*x, index), 2).ok());
  uint64_t later = log.want(x, slot(*x, 0));
  EXPECT_TRUE(write(*x, slot(*x, 0), 3).ok());
  for (int64_t index : {0, 1, 2, 3})
    EXPECT_EQ(valueAt(index, time), 1) << index;
  EXPECT_EQ(valueAt(0, later), 2);
  EXPECT_EQ(log.findArray(*x, whole, time), nullptr);
  Box apart = whole; // a column stands apart in the array
  apart.dims[1] = IndexSet(0, 1);
  later = log.want(x, apart);
  EXPECT_TRUE(write(*x, apart, 4).ok());
  EXPECT_EQ(log.findArray(*x, apart, later), nullptr);
}

TEST_F(Versions, APartIsNotFoundFarFromItsWant) {
  uint64_t time = log.want(x, whole);
  for (int step = 0; step < 10; ++step) {
    EXPECT_TRUE(write(*x, slot(*x, step % 3), step).ok());
    log.want(x, whole);
  }
  EXPECT_EQ(log.findArray(*x, slot(*x, 3), time), nullptr);
}

/// Whose drivers may check addresses.
TEST_F(Versions, APartIsNotFoundOnAGpu) {
  device = *openSimt({}, 1 << 20);
  auto y = make({4, 2});
  uint64_t time = log.want(y, whole);
  EXPECT_TRUE(write(*y, slot(*y, 1), 2).ok());
  EXPECT_EQ(log.findArray(*y, slot(*y, 1), time), nullptr);
  EXPECT_EQ(log.findArray(*y, whole, log.want(y, whole)), y->buffer.address);
}

TEST_F(Versions, WhatIsLostIsNotFound) {
  log.forbidCopies();
  uint64_t time = log.want(x, whole);
  EXPECT_TRUE(write(*x, whole, 1).ok());
  EXPECT_EQ(log.findArray(*x, whole, time), nullptr);
}

TEST_F(Versions, TimesArePutInPlaceAndBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    struct Moment {
      uint64_t time;
      Region wanted;
      Values values;
    };
    std::vector<Moment> moments;
    for (int step = 0; step < 8; ++step) {
      Box box = random() % 3 ? slot(*x, random() % 4) : whole;
      if (random() % 2)
        moments.push_back({log.want(x, box), Region(box), contents(*x)});
      else
        EXPECT_TRUE(write(*x, box, double(random() % 100)).ok());
    }
    const Values newest = contents(*x);
    for (int twice = 0; twice < 2; ++twice) {
      log.beginUse(true);
      for (size_t m = moments.size(); m-- > 0;) {
        // At any stage, all earlier times can be read.
        size_t early = random() % (m + 1);
        auto copy = make({4, 2});
        for (const Box &box : moments[early].wanted.boxes())
          EXPECT_TRUE(
              log.read(*x, box, moments[early].time, copy->buffer).ok());
        Values old = contents(*copy);
        for (const Box &box : moments[early].wanted.boxes())
          forEachElement(box, *x, [&](size_t at) {
            ASSERT_EQ(old[at], moments[early].values[at]);
          });
        for (const Box &box : moments[early].wanted.boxes())
          if (auto *found = reinterpret_cast<double *>(
                  log.findArray(*x, box, moments[early].time)))
            forEachElement(box, *x, [&](size_t at) {
              ASSERT_EQ(found[at], moments[early].values[at]);
            });
        EXPECT_TRUE(log.rewind(*x, moments[m].time).ok());
        Values now = contents(*x);
        for (const Box &box : moments[m].wanted.boxes())
          forEachElement(box, *x, [&](size_t at) {
            ASSERT_EQ(now[at], moments[m].values[at]);
          });
      }
      log.restore();
      log.endUse();
      ASSERT_EQ(contents(*x), newest);
    }
    log.clear();
    EXPECT_FALSE(x->isWatched());
  }
}

TEST_F(Versions, AWantThatIsDroppedLeavesThoseOfOthers) {
  log.want(x, slot(*x, 1));
  Region added;
  log.want(x, whole, &added);
  EXPECT_EQ(added.size(), 6);
  log.drop(*x, added);
  EXPECT_TRUE(write(*x, whole, 3).ok());
  EXPECT_EQ(log.bytes(), 16u);
}

TEST_F(Versions, UndoPutsBackWhatWasThere) {
  EXPECT_TRUE(write(*x, whole, 1).ok());
  VersionLog undo(Purpose::Undo);
  undo.want(x, whole);
  EXPECT_TRUE(write(*x, slot(*x, 1), 2).ok());
  EXPECT_TRUE(write(*x, whole, 3).ok());
  undo.rollBack();
  EXPECT_EQ(contents(*x), Values(8, 1));
}

TEST_F(Versions, WhatMayNotBeCopiedIsKnownToBeLost) {
  auto y = make({4, 2});
  log.forbidCopies(*x);
  uint64_t before = log.want(x, whole);
  log.want(y, whole);
  EXPECT_TRUE(write(*x, slot(*x, 1), 2).ok());
  EXPECT_TRUE(write(*y, slot(*y, 1), 2).ok());
  EXPECT_EQ(log.bytes(), 16u);
  EXPECT_NE(log.loss(*x, whole, before), nullptr);
  EXPECT_EQ(log.loss(*x, slot(*x, 0), before), nullptr);
  EXPECT_EQ(log.loss(*y, whole, before), nullptr);
  uint64_t after = log.want(x, whole);
  EXPECT_EQ(log.loss(*x, whole, after), nullptr);
}

/// An earlier copy has what a later write has lost.
TEST_F(Versions, ALaterLossDoesNotReachAnEarlierVersion) {
  uint64_t before = log.want(x, whole);
  EXPECT_TRUE(write(*x, whole, 1).ok());
  uint64_t between = log.want(x, whole);
  log.forbidCopies();
  EXPECT_TRUE(write(*x, whole, 2).ok());
  EXPECT_EQ(log.loss(*x, whole, before), nullptr);
  EXPECT_NE(log.loss(*x, whole, between), nullptr);
}

TEST_F(Versions, NoMemoryRefusesTheWriteOrLosesTheValue) {
  auto large = make({60000});
  const Box all = Box::whole({60000});
  auto other = make({60000});
  EXPECT_TRUE(write(*large, all, 1).ok());
  uint64_t time = log.want(large, all);
  Result<> refused = write(*large, all, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
  for (const char *part : {"the test", "(60000)", "clear"})
    EXPECT_NE(refused.error().text.find(part), std::string::npos)
        << refused.error().text;
  EXPECT_EQ(contents(*large)[7], 1);
  EXPECT_EQ(log.loss(*large, all, time), nullptr);
  EXPECT_TRUE(write(*large, all, 2, /*certain=*/true).ok());
  EXPECT_NE(log.loss(*large, all, time), nullptr);
}

TEST_F(Versions, SmallCopiesLieSideBySide) {
  auto y = make({8});
  const Box all = Box::whole({8});
  const size_t before = device->memory().current;
  for (int step = 0; step < 1000; ++step) {
    log.want(y, all);
    EXPECT_TRUE(write(*y, all, step).ok());
  }
  EXPECT_EQ(log.bytes(), 64000u);
  EXPECT_LE(device->memory().current - before, 2 * 64000u);
  log.clear();
  EXPECT_EQ(device->memory().current, before);
}

TEST_F(Versions, CopiesOfLinesBeginWithALine) {
  CopyMemory memory(device);
  for (size_t bytes : {8u, 100u, 16u, 1000u, 8u, 64u, 70000u, 24u, 4000u}) {
    auto address = reinterpret_cast<uintptr_t>(memory.take(bytes)->address);
    EXPECT_EQ(address % (bytes < 64 ? 16 : 64), 0u) << bytes;
  }
}

/// The last bytes are given away one copy at a time.
TEST_F(Versions, CopiesFillTheMemoryThatThereIs) {
  auto large = make({(1 << 17) - 600}), y = make({8});
  const Box all = Box::whole({8});
  int copies = 0;
  for (bool fits = true; fits; copies += fits) {
    log.want(y, all);
    fits = write(*y, all, 1).ok();
  }
  EXPECT_GE(log.bytes() + large->buffer.bytes + y->buffer.bytes + 4096,
            size_t(1) << 20);
  EXPECT_EQ(log.bytes(), size_t(copies) * 64);
}

TEST_F(Versions, ALogLooksOnlyAtArraysOfWhichItWantsSomething) {
  uint64_t time = log.want(x, slot(*x, 1));
  EXPECT_TRUE(write(*x, slot(*x, 0), 1).ok());
  EXPECT_TRUE(x->isWatched());
  EXPECT_TRUE(write(*x, whole, 2).ok());
  EXPECT_FALSE(x->isWatched());
  // While it may be rewound, others are refused all the same.
  log.beginUse(true);
  std::thread([&] {
    EXPECT_FALSE(write(*x, slot(*x, 1), 3).ok());
    EXPECT_FALSE(x->announceRead([] { return std::string("a test"); }).ok());
  }).join();
  EXPECT_TRUE(log.rewind(*x, time).ok());
  EXPECT_EQ(contents(*x)[2], 0);
  log.restore();
  log.endUse();
  EXPECT_TRUE(x->announceRead([] { return std::string("a test"); }).ok());
  log.want(x, whole);
  EXPECT_TRUE(write(*x, slot(*x, 0), 4).ok());
  EXPECT_TRUE(x->isWatched());
  EXPECT_EQ(log.bytes(), 32u);
}

TEST_F(Versions, OtherThreadsMayWriteUnlessTheLogIsInUse) {
  std::vector<std::shared_ptr<ArrayStorage>> arrays;
  for (int k = 0; k < 4; ++k)
    arrays.push_back(make({64}));
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (auto &array : arrays)
    writers.emplace_back([&done, array] {
      while (!done)
        EXPECT_TRUE(write(*array, Box::whole({64}), 1).ok());
    });
  for (int round = 0; round < 2000; ++round) {
    log.want(arrays[round % 4], Box::whole({64}));
    if (round % 100 == 0)
      log.clear();
  }
  done = true;
  for (std::thread &writer : writers)
    writer.join();

  log.clear();
  log.want(x, slot(*x, 1));
  log.beginUse(true);
  std::thread([&] {
    EXPECT_TRUE(write(*x, slot(*x, 2), 1).ok());
    Result<> refused = write(*x, slot(*x, 1), 1);
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text.find("another thread"), std::string::npos);
  }).join();
  log.endUse();
}

TEST_F(Versions, ATemporaryExchangeIsCopiedOnlyIfItIsObserved) {
  for (bool observed : {false, true}) {
    VersionLog outer(Purpose::Versions), inner(Purpose::Versions);
    uint64_t early = outer.want(x, whole);
    EXPECT_TRUE(write(*x, whole, 5).ok());
    inner.want(x, whole);
    outer.beginUse(observed);
    EXPECT_TRUE(outer.rewind(*x, early).ok());
    EXPECT_EQ(inner.bytes(), observed ? 64u : 0u);
    outer.restore();
    outer.endUse();
  }
}

TEST_F(Versions, ContentsAreOthersOnlyWhileOldOnesAreInPlace) {
  EXPECT_TRUE(write(*x, whole, 1).ok());
  uint64_t ones = log.want(x, whole);
  EXPECT_TRUE(write(*x, whole, 2).ok());
  auto copy = make({4, 2});
  log.beginUse(/*observed=*/false);
  const uint64_t newest = x->contents();
  EXPECT_TRUE(log.read(*x, whole, ones, copy->buffer).ok());
  EXPECT_EQ(x->contents(), newest) << "it has only been read";
  EXPECT_TRUE(log.rewind(*x, ones).ok());
  const uint64_t old = x->contents();
  EXPECT_NE(old, newest);
  log.restore();
  EXPECT_NE(x->contents(), old);
  log.endUse();
}

/// Where each copy by the device costs a call.
TEST_F(Versions, AComponentIsCopiedAtOnce) {
  device = *openSimt(1, 1 << 20);
  auto y = make({1000, 2});
  const Box all = Box::whole({1000, 2});
  Box second = all;
  second.dims[1] = IndexSet(1, 2);
  EXPECT_TRUE(write(*y, all, 1).ok());
  uint64_t time = log.want(y, all);
  auto copies = [&](const std::function<void()> &body) {
    device->resetStatistics();
    body();
    return device->statistics().copies;
  };
  EXPECT_EQ(copies([&] { EXPECT_TRUE(write(*y, second, 2).ok()); }), 1u);
  EXPECT_EQ(log.bytes(), 8000u);
  const Values newest = contents(*y);
  auto old = make({1000, 2});
  EXPECT_EQ(copies([&] {
              EXPECT_TRUE(log.read(*y, second, time, old->buffer).ok());
            }),
            2u);
  EXPECT_EQ(contents(*old)[1], 1);
  EXPECT_EQ(contents(*old)[0], 0);
  log.beginUse(true);
  EXPECT_EQ(copies([&] { EXPECT_TRUE(log.rewind(*y, time).ok()); }), 3u);
  EXPECT_EQ(contents(*y), Values(2000, 1));
  EXPECT_EQ(copies([&] { log.restore(); }), 3u);
  EXPECT_EQ(contents(*y), newest);
  log.endUse();
}
