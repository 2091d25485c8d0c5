#include "runtime/Snapshots.h"
#include "runtime/WatchedArrayTest.h"

#include <random>

using namespace costate;
using namespace costate::runtime;
using Values = std::vector<double>;

namespace {
class SnapshotsOf : public WatchedArrayTest {
protected:
  Snapshots snapshots;
};
} // namespace

TEST_F(SnapshotsOf, CopyAnElementOnce) {
  snapshots.add(x);
  snapshots.take();
  EXPECT_EQ(snapshots.bytes(), 0u);
  ASSERT_TRUE(write(*x, slots(*x, 0, 1), 1).ok());
  EXPECT_EQ(snapshots.bytes(), 16u);
  ASSERT_TRUE(write(*x, slots(*x, 0, 2), 2).ok());
  EXPECT_EQ(snapshots.bytes(), 32u);
  ASSERT_TRUE(write(*x, whole, 3).ok());
  EXPECT_EQ(snapshots.bytes(), 64u);
  EXPECT_FALSE(x->isWatched());
  EXPECT_EQ(snapshots.largestBytes(), 64u);
  EXPECT_EQ(snapshots.overwrittenBytes(), 64u);
  ASSERT_TRUE(snapshots.restore().ok());
  EXPECT_EQ(contents(*x), Values(8, 0));
}

TEST_F(SnapshotsOf, TellWhatOneOfThemAllWouldHold) {
  snapshots.add(x);
  snapshots.take();
  ASSERT_TRUE(write(*x, slots(*x, 0, 1), 1).ok());
  snapshots.take();
  ASSERT_TRUE(write(*x, whole, 2).ok());
  snapshots.take();
  ASSERT_TRUE(write(*x, slots(*x, 1, 3), 3).ok());
  EXPECT_EQ(snapshots.overwrittenBytes(), 64u);
  EXPECT_EQ(snapshots.mergedBytes(), 16u + 64u);
  snapshots.drop(2);
  snapshots.drop(1);
  EXPECT_EQ(snapshots.bytes(), 16u + 64u);
  ASSERT_TRUE(snapshots.restore().ok());
  EXPECT_EQ(contents(*x), Values(8, 0));
}

TEST_F(SnapshotsOf, AreRestoredAsOftenAsOneWants) {
  snapshots.add(x);
  snapshots.take();
  for (int k = 1; k <= 3; ++k) {
    ASSERT_TRUE(write(*x, slots(*x, 0, k), k).ok());
    ASSERT_TRUE(snapshots.restore().ok());
    EXPECT_EQ(contents(*x), Values(8, 0));
  }
}

TEST_F(SnapshotsOf, BeginBeforeWhatIsGuardedIsLost) {
  snapshots.add(x);
  snapshots.guard(*x, slots(*x, 1, 2));
  ASSERT_TRUE(write(*x, slots(*x, 2, 4), 1).ok());
  EXPECT_EQ(snapshots.count(), 0u);
  EXPECT_EQ(snapshots.bytes(), 0u);
  EXPECT_FALSE(snapshots.wouldBegin(*x, slots(*x, 2, 4)));
  EXPECT_TRUE(snapshots.wouldBegin(*x, whole));
  ASSERT_TRUE(write(*x, whole, 2).ok());
  EXPECT_EQ(snapshots.count(), 1u);
  snapshots.take();
  ASSERT_TRUE(write(*x, whole, 3).ok());
  ASSERT_TRUE(snapshots.restore().ok());
  EXPECT_EQ(contents(*x), Values(8, 2));
  ASSERT_TRUE(snapshots.restoreFirst().ok());
  EXPECT_EQ(contents(*x), (Values{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST_F(SnapshotsOf, NameWhatIsLost) {
  snapshots.add(x);
  snapshots.take();
  ASSERT_TRUE(write(*x, whole, 1, /*certain=*/true, /*past=*/true).ok());
  Result<> done = snapshots.restore();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::CannotReplay);
  EXPECT_NE(done.error().text.find("the test"), std::string::npos);
}

TEST_F(SnapshotsOf, RefuseWritesThatDoNotFit) {
  std::shared_ptr<Device> tight = *openCpu(1, 4096);
  auto big = *makeArray(tight, DType::F64, {300}, false, false);
  snapshots.add(big);
  snapshots.take();
  Result<> done = write(*big, Box::whole({300}), 1);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::OutOfMemory);
  EXPECT_EQ(contents(*big), Values(300, 0));
}

TEST_F(SnapshotsOf, GiveTheirMemoryBack) {
  size_t before = device->memory().current;
  {
    Snapshots own;
    own.add(x);
    for (int k = 0; k < 3; ++k) {
      own.take();
      ASSERT_TRUE(write(*x, whole, k).ok());
    }
    EXPECT_EQ(own.bytes(), 3 * 64u);
    own.drop(1);
    EXPECT_EQ(own.bytes(), 2 * 64u);
    EXPECT_EQ(own.peakBytes(), 3 * 64u);
  }
  EXPECT_EQ(device->memory().current, before);
  EXPECT_FALSE(x->isWatched());
}

/// Against copies of everything.
TEST_F(SnapshotsOf, AreWhatFullCopiesAre) {
  std::mt19937 random(7);
  auto below = [&](size_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    Snapshots own;
    std::vector<std::shared_ptr<ArrayStorage>> arrays{make({5, 2}), make({3})};
    std::vector<std::vector<Values>> copies; // by snapshot
    auto now = [&] {
      return std::vector<Values>{contents(*arrays[0]), contents(*arrays[1])};
    };
    own.add(arrays[0]);
    own.take();
    copies.push_back(now());
    own.add(arrays[1]);
    for (int step = 0; step < 30; ++step) {
      ArrayStorage &array = *arrays[static_cast<size_t>(below(2))];
      int64_t begin = below(static_cast<size_t>(array.extents[0]));
      int64_t end =
          begin + 1 + below(static_cast<size_t>(array.extents[0] - begin));
      ASSERT_TRUE(write(array, slots(array, begin, end),
                        static_cast<double>(random() % 1000))
                      .ok());
      if (below(3) == 0) {
        own.take();
        copies.push_back(now());
      } else if (below(4) == 0 && own.count() > 1) {
        auto position = static_cast<size_t>(1 + below(own.count() - 1));
        own.drop(position);
        copies.erase(copies.begin() + static_cast<long>(position));
      } else if (below(4) == 0) {
        ASSERT_TRUE(own.restore().ok());
        ASSERT_EQ(now(), copies.back()) << round << " " << step;
      }
    }
    while (own.count() > 0) {
      ASSERT_TRUE(own.restore().ok());
      ASSERT_EQ(now(), copies.back()) << round;
      own.drop(own.count() - 1);
      copies.pop_back();
    }
    ASSERT_EQ(own.bytes(), 0u);
  }
}
