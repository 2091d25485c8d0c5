/// Device functions by hand, on the host as a GPU.

#include "runtime/simt/SimtDevice.h"

#include "base/DeviceWords.h"
#include "runtime/simt/Callbacks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <set>

using namespace costate;
using namespace costate::runtime;

namespace {

constexpr int64_t blockThreads = 128, warpSize = 32;

/// What the functions here are called with: `words` of a launch.
template <class T> T &at(const uint64_t *words, size_t number) {
  return *reinterpret_cast<T *>(words[number]);
}

template <class T> uint64_t word(T &value) {
  return reinterpret_cast<uint64_t>(&value);
}

Result<> launchOn(const simt::Options &options, simt::DeviceEntry entry,
                  std::vector<uint64_t> words, gpu::Grid grid,
                  size_t sharedBytes = 0, bool collective = true) {
  auto driver = simt::createDriver(options);
  gpu::DeviceCode code;
  code.addresses["f"] = reinterpret_cast<void *>(entry);
  code.functions.emplace_back().symbol = "f";
  code.functions[0].collective = collective;
  auto module = driver->load(code);
  return driver->launch(**module, "f", grid, words, sharedBytes);
}

/// With `warpSize` lanes, whatever the environment says.
Result<> launch(simt::DeviceEntry entry, std::vector<uint64_t> words,
                gpu::Grid grid, simt::Options options = {},
                size_t sharedBytes = 0, bool collective = true) {
  options.lanes = warpSize;
  return launchOn(options, entry, std::move(words), grid, sharedBytes,
                  collective);
}

/// With twice as many.
Result<> launchWide(simt::DeviceEntry entry, std::vector<uint64_t> words,
                    gpu::Grid grid) {
  return launchOn({.lanes = 2 * warpSize}, entry, std::move(words), grid);
}

void expectRuns(const Result<> &done) {
  EXPECT_TRUE(done.ok()) << done.error().text;
}

void expectInternal(const Result<> &done, const std::string &part) {
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Internal);
  EXPECT_NE(done.error().text.find(part), std::string::npos)
      << done.error().text;
}

[[noreturn]] void endWithError(const uint64_t *words, size_t cell) {
  struct {
    void *tape[3] = {};
    int64_t workItem = 0, lane = 0;
    uint64_t errors;
  } worker;
  worker.errors = words[cell];
  costate_device_step_zero(reinterpret_cast<DeviceWorker *>(&worker), 7);
}

//===-- Collectives -------------------------------------------------------===//

/// Stores the maximum of its warp, twice: of its number and of its complement.
void maxima(const uint64_t *words, int64_t thread, int64_t threads,
            std::byte *) {
  auto *out = &at<uint64_t>(words, 0);
  auto own = static_cast<uint64_t>(thread);
  out[thread] = costate_device_warp_max(own);
  out[threads + thread] = costate_device_warp_max(~own);
}

TEST(Simt, AWarpFindsItsLargestValue) {
  constexpr int64_t blocks = 3, threads = blocks * blockThreads;
  std::vector<uint64_t> out(2 * threads);
  expectRuns(launch(maxima, {word(out[0])}, {blocks, blockThreads}));
  for (int64_t k = 0; k < threads; ++k) {
    int64_t first = k / warpSize * warpSize;
    EXPECT_EQ(out[k], static_cast<uint64_t>(first + warpSize - 1)) << k;
    EXPECT_EQ(out[threads + k], ~static_cast<uint64_t>(first)) << k;
  }
}

TEST(Simt, AWarpMayLackLanes) {
  std::vector<uint64_t> out(2 * 37);
  expectRuns(launch(maxima, {word(out[0])}, {1, 37}));
  EXPECT_EQ(out[31], 31u);
  EXPECT_EQ(out[32], 36u);
}

TEST(Simt, AWarpMayHave64Lanes) {
  constexpr int64_t threads = 160, lanes = 64;
  std::vector<uint64_t> out(2 * threads);
  expectRuns(launchWide(maxima, {word(out[0])}, {1, threads}));
  for (int64_t k = 0; k < threads; ++k) {
    int64_t first = k / lanes * lanes;
    EXPECT_EQ(out[k],
              static_cast<uint64_t>(std::min(first + lanes, threads) - 1))
        << k;
    EXPECT_EQ(out[threads + k], ~static_cast<uint64_t>(first)) << k;
  }
}

/// What kernels do in what they call a warp.
void inHalves(const uint64_t *words, int64_t thread, int64_t threads,
              std::byte *) {
  auto *out = &at<int64_t>(words, 0);
  auto own = static_cast<int32_t>(thread);
  int64_t site = 0;
  auto put = [&](int64_t value) { out[site++ * threads + thread] = value; };
  put(costate_device_warp_shuffle_xor(-1, own, 1, site));
  put(costate_device_warp_shuffle_down_i64(-1, own, 5, site));
  put(costate_device_warp_ballot(-1, thread == 3 || thread == 40, site));
  put(costate_device_warp_any(-1, thread == 70, site));
  put(costate_device_warp_active_mask(site));
  put(costate_device_warp_match_any(-1, own % 2, site));
}

void expectHalves(const std::vector<int64_t> &out, int64_t threads) {
  auto value = [&](int64_t k, int64_t thread) {
    return out[k * threads + thread];
  };
  for (int64_t k = 0; k < threads; ++k) {
    EXPECT_EQ(value(0, k), k ^ 1) << k;
    EXPECT_EQ(value(1, k), k % 32 + 5 < 32 ? k + 5 : k) << k;
    EXPECT_EQ(value(2, k), k / 32 == 0 ? 8 : k / 32 == 1 ? 256 : 0) << k;
    EXPECT_EQ(value(3, k), k / 32 == 2) << k;
    EXPECT_EQ(value(4, k), -1) << k;
    EXPECT_EQ(value(5, k), k % 2 ? int32_t(0xaaaaaaaa) : 0x55555555) << k;
  }
}

TEST(Simt, WhatKernelsCallAWarpHas32Lanes) {
  constexpr int64_t threads = 96;
  std::vector<int64_t> out(6 * threads);
  expectRuns(launch(inHalves, {word(out[0])}, {1, threads}));
  expectHalves(out, threads);
  std::vector<int64_t> wide(6 * threads);
  expectRuns(launchWide(inHalves, {word(wide[0])}, {1, threads}));
  expectHalves(wide, threads);
}

/// Half of a wide warp is at an operation of kernels, the other one at one of
/// the warp.
void halfAtMaximum(const uint64_t *, int64_t thread, int64_t, std::byte *) {
  if (thread < warpSize)
    costate_device_warp_sync(-1, 5);
  else
    costate_device_warp_max(1);
}

TEST(Simt, LanesOfTwoHalvesMayWaitForEachOther) {
  expectRuns(launch(halfAtMaximum, {}, {1, 2 * warpSize}));
  Result<> done = launchWide(halfAtMaximum, {}, {1, 2 * warpSize});
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().text.find("two lanes of warp 0 of block 0 wait"),
            std::string::npos)
      << done.error().text;
}

/// Lanes run loops of different lengths and then agree on the longest.
void realign(const uint64_t *words, int64_t thread, int64_t, std::byte *) {
  auto *out = &at<uint64_t>(words, 0);
  uint64_t trips = 0;
  for (int64_t outer = 0; outer < 3; ++outer) {
    for (int64_t k = 0; k < thread * outer % 7; ++k)
      ++trips;
    trips = costate_device_warp_max(trips);
  }
  out[thread] = trips;
}

TEST(Simt, AllLanesOfAWarpGetTheSameValueTimeAndAgain) {
  std::vector<uint64_t> out(blockThreads);
  expectRuns(launch(realign, {word(out[0])}, {1, blockThreads}));
  EXPECT_EQ(out, std::vector<uint64_t>(blockThreads, 12));
}

/// Every thread leaves a number in shared memory and reads that of another one.
void exchange(const uint64_t *words, int64_t thread, int64_t,
              std::byte *memory) {
  auto *shared = reinterpret_cast<int64_t *>(memory);
  auto *out = &at<int64_t>(words, 0);
  int64_t inBlock = thread % blockThreads;
  for (int64_t round = 0; round < 3; ++round) {
    shared[inBlock] = thread + round;
    costate_device_block_barrier();
    out[thread] += shared[blockThreads - 1 - inBlock];
    costate_device_block_barrier();
  }
}

TEST(Simt, ABlockExchangesValuesThroughItsMemory) {
  constexpr int64_t blocks = 5;
  std::vector<int64_t> out(blocks * blockThreads);
  expectRuns(launch(exchange, {word(out[0])}, {blocks, blockThreads},
                    {.threads = 2}, 8 * blockThreads));
  for (int64_t k = 0; k < blocks * blockThreads; ++k) {
    int64_t first = k / blockThreads * blockThreads;
    EXPECT_EQ(out[k], 3 * (2 * first + blockThreads - 1 - k) + 3) << k;
  }
}

/// Every thread adds 1 to each element of two arrays, which are said to have a
/// quarter of them, so that they come to more than a block has sums for; it
/// notes what it finds in the first.
void addInBlock(const uint64_t *words, int64_t thread, int64_t, std::byte *) {
  auto *narrow = &at<float>(words, 0);
  auto *wide = &at<double>(words, 1);
  auto elements = static_cast<int64_t>(words[2]);
  costate_device_begin_in_block();
  for (int64_t k = 0; k < elements; ++k) {
    costate_device_add_in_block_f32(narrow + k, 1, elements / 4);
    costate_device_add_in_block_f64(wide + k, 1, elements / 4);
  }
  (&at<float>(words, 3))[thread] = narrow[0];
  costate_device_end_in_block();
}

TEST(Simt, ABlockTakesItsSumsToMemoryWhenItEnds) {
  constexpr int64_t blocks = 6, threads = blocks * blockThreads;
  for (size_t elements : {3, 100, 1000}) {
    std::vector<float> narrow(elements), seen(threads);
    std::vector<double> wide(elements, 0.5);
    expectRuns(launch(addInBlock,
                      {word(narrow[0]), word(wide[0]), elements, word(seen[0])},
                      {blocks, blockThreads}, {.threads = 2}));
    EXPECT_EQ(narrow, std::vector<float>(elements, threads)) << elements;
    EXPECT_EQ(wide, std::vector<double>(elements, threads + 0.5)) << elements;
    for (float sum : seen) // nothing of its own block
      EXPECT_EQ(std::fmod(sum, float(blockThreads)), 0) << elements;
  }
}

void noteMemory(const uint64_t *words, int64_t, int64_t, std::byte *memory) {
  at<std::byte *>(words, 0) = memory;
  if (memory)
    at<std::byte>(words, 1) = memory[299];
}

TEST(Simt, SharedMemoryIsThereIfAskedForAndNotCleared) {
  std::byte *memory = nullptr, last{0};
  expectRuns(launch(noteMemory, {word(memory), word(last)}, {1, 1}, {}, 300));
  EXPECT_TRUE(memory);
  EXPECT_NE(last, std::byte(0));
  expectRuns(launch(noteMemory, {word(memory), word(last)}, {1, 1}));
  EXPECT_FALSE(memory);
}

TEST(Simt, MoreSharedMemoryThanABlockHasIsAnError) {
  simt::Options small{.sharedPerBlock = 1000};
  auto driver = simt::createDriver(small);
  EXPECT_EQ(driver->properties().sharedPerBlock, 1000u);
  EXPECT_EQ(driver->properties().sharedPerMultiprocessor, 228u << 10);
  EXPECT_EQ(driver->properties().l2Bytes, 32u << 20);
  std::byte *memory = nullptr, last{0};
  std::vector<uint64_t> words{word(memory), word(last)};
  expectRuns(launch(noteMemory, words, {1, 1}, small, 1000));
  expectInternal(launch(noteMemory, words, {1, 1}, small, 1001),
                 "needs 1001 bytes of shared memory, and there are 1000");
}

//===-- Threads that end --------------------------------------------------===//

/// Lanes end one after another, by returning or with an error; the others go
/// on meeting. Warp 1 ends as a whole, while others wait at a barrier.
void dwindle(const uint64_t *words, int64_t thread, int64_t, std::byte *) {
  auto *out = &at<uint64_t>(words, 0);
  int64_t warp = thread / warpSize, lane = thread % warpSize;
  if (warp == 1)
    return;
  for (int64_t k = 31; k > 0; --k) {
    if (lane == k && k % 2)
      return;
    if (lane == k)
      endWithError(words, 1);
    out[thread] = costate_device_warp_max(static_cast<uint64_t>(lane));
  }
  costate_device_block_barrier();
  out[thread] += 100;
}

TEST(Simt, ThreadsThatHaveEndedAreNotWaitedFor) {
  std::vector<uint64_t> out(blockThreads);
  DeviceErrorCell cell{};
  expectRuns(launch(dwindle, {word(out[0]), word(cell)}, {1, blockThreads}));
  EXPECT_EQ(cell.kind, DeviceErrorCell::StepZero);
  EXPECT_EQ(cell.site, 7);
  EXPECT_EQ(out[0], 100u);
  EXPECT_EQ(out[64], 100u);
  EXPECT_EQ(out[32], 0u);
  EXPECT_EQ(out[3], 3u);
}

//===-- What can never end ------------------------------------------------===//

void maximumOrBarrier(const uint64_t *, int64_t thread, int64_t, std::byte *) {
  if (thread == 40)
    costate_device_block_barrier();
  else
    costate_device_warp_max(1);
}

TEST(Simt, LanesThatWaitForEachOtherAreAnError) {
  Result<> done = launch(maximumOrBarrier, {}, {1, blockThreads});
  expectInternal(done, "`f`: two lanes of warp 1 of block 0 wait for each "
                       "other: lane ");
  expectInternal(done, "a barrier of the block");
  expectInternal(done, "a maximum over the warp");
}

void warpBarrierOrMaximum(const uint64_t *, int64_t thread, int64_t,
                          std::byte *) {
  costate_device_warp_barrier();
  if (thread == 3)
    costate_device_warp_barrier();
  else
    costate_device_warp_max(1);
}

TEST(Simt, ABarrierOfAWarpIsNoMaximum) {
  Result<> done = launch(warpBarrierOrMaximum, {}, {1, blockThreads});
  expectInternal(done, "two lanes of warp 0 of block 0 wait for each other");
  expectInternal(done, "a barrier of the warp");
  expectInternal(done, "a maximum over the warp");
}

void twoPlaces(const uint64_t *, int64_t thread, int64_t, std::byte *) {
  costate_device_warp_max_at(1, thread == 70 ? 8 : 9);
}

TEST(Simt, LanesOfAWarpMeetAtOnePlace) {
  Result<> done = launch(twoPlaces, {}, {1, blockThreads});
  expectInternal(done, "two lanes of warp 2 of block 0 wait for each other");
  expectInternal(done, "at a maximum over the warp elsewhere");
}

TEST(Simt, OnlyCollectiveFunctionsMayWait) {
  std::vector<uint64_t> out(2 * blockThreads);
  expectInternal(
      launch(maxima, {word(out[0])}, {1, blockThreads}, {}, 0, false),
      "is not said to be collective");
}

//===-- Chance ------------------------------------------------------------===//

struct Order {
  std::mutex mutex;
  std::vector<int64_t> threads;
};

void noteOrder(const uint64_t *words, int64_t thread, int64_t, std::byte *) {
  auto &order = at<Order>(words, 0);
  for (int k = 0; k < 2; ++k) {
    {
      std::lock_guard lock(order.mutex);
      order.threads.push_back(thread);
    }
    costate_device_warp_max(0);
  }
}

std::vector<int64_t> orderOf(uint64_t seed) {
  Order order;
  expectRuns(launch(noteOrder, {word(order)}, {1, 64}, {.seed = seed}));
  return order.threads;
}

TEST(Simt, ChoicesThatItDoesNotKnowAreRefused) {
  const char *before = std::getenv("COSTATE_SIMT");
  std::string kept = before ? before : "";
  auto failureOf = [](const char *choices) -> std::string {
    setenv("COSTATE_SIMT", choices, 1);
    auto device = openSimt(1, 1 << 20);
    return device ? "" : device.error().text;
  };
  for (const char *known :
       {"", ",seed=3,", "seed=3,block=64,shared=48,chip=100", "sort=apart",
        "registers=few", "copies=beside", "lanes=64", "lanes=32,block=32"})
    EXPECT_EQ(failureOf(known), "");
  for (std::string wrong :
       {"sede=3", "seed", "seed=", "seed=x", "seed=3x", "block=33", "block=0",
        "block=2048", "shared=-1", "lanes=16", "lanes=48", "sort=never",
        "registers=3", "copies=late", "shared=99999999999"}) {
    std::string text = failureOf(("seed=1," + wrong).c_str());
    EXPECT_NE(text.find("`" + wrong + "`; it takes `seed=N`"),
              std::string::npos)
        << wrong << ": " << text;
  }
  before ? setenv("COSTATE_SIMT", kept.c_str(), 1) : unsetenv("COSTATE_SIMT");
}

TEST(Simt, TheSeedDecidesWhoRunsNext) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<int64_t> order = orderOf(seed);
    EXPECT_EQ(order, orderOf(seed));
    orders.insert(order);
    std::ranges::sort(order);
    ASSERT_EQ(order.size(), 128u);
    for (int64_t k = 0; k < 128; ++k)
      EXPECT_EQ(order[k], k / 2);
  }
  EXPECT_EQ(orders.size(), 10u);
}

/// A warp adds to a counter that others use, too, without an atomic.
void addAndLose(const uint64_t *words, int64_t thread, int64_t, std::byte *) {
  auto &counter = at<uint64_t>(words, 0);
  uint64_t before = counter;
  costate_device_warp_max(before);
  if (thread % warpSize == 0)
    counter = before + 1;
  costate_device_warp_max(0);
}

TEST(Simt, SomeScheduleLosesAnUpdate) {
  std::set<uint64_t> found;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    uint64_t counter = 0;
    expectRuns(launch(addAndLose, {word(counter)}, {1, 64}, {.seed = seed}));
    found.insert(counter);
  }
  EXPECT_EQ(found, (std::set<uint64_t>{1, 2}));
}

/// Uses much of a stack, between two meetings.
uint64_t deep(uint64_t depth) {
  volatile uint64_t room[64] = {depth};
  if (depth == 0)
    return costate_device_warp_max(1);
  return room[0] + deep(depth - 1) - room[0];
}

void useStack(const uint64_t *words, int64_t thread, int64_t, std::byte *) {
  (&at<uint64_t>(words, 0))[thread] = deep(1000);
}

TEST(Simt, StacksAreDeep) {
  std::vector<uint64_t> out(256);
  expectRuns(launch(useStack, {word(out[0])}, {2, blockThreads}));
  EXPECT_EQ(out, std::vector<uint64_t>(256, 1));
}

/// In each type: what reads like 0 would hide that nobody has written it.
TEST(Simt, MemoryBeginsWithLargeNumbers) {
  auto driver = simt::createDriver({});
  auto memory = driver->allocate(64);
  ASSERT_TRUE(memory.ok());
  auto first = [&]<class T>(T) {
    T value;
    std::memcpy(&value, *memory, sizeof value);
    return value;
  };
  EXPECT_GT(first(double()), 1e300);
  EXPECT_GT(first(float()), 1e37f);
  EXPECT_GT(first(int32_t()), int32_t(1) << 30);
  driver->release(*memory);
}

} // namespace
