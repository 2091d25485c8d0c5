/// Adding up over a grid, on the host as a GPU.

#include "device/DeviceSums.h"

#include "base/DeviceWords.h"
#include "base/RangeSums.h"
#include "runtime/simt/Callbacks.h"
#include "runtime/simt/SimtDevice.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace costate;
using namespace costate::runtime;

/// DeviceSumsSerial.c: as for Vulkan.
extern "C" int64_t costate_test_finish_sums(double *, int64_t, uint64_t *,
                                            int64_t, int64_t, double *, int64_t,
                                            int64_t, double *);

namespace {

constexpr int64_t sumCount = 3;

int lanes = 32; ///< of a warp

/// Warps have 64 lanes while it lives.
struct WideWarps {
  WideWarps() { lanes = 64; }
  ~WideWarps() { lanes = 32; }
};

/// What the function here is called with.
struct Call {
  double *partials;
  int64_t count, first;
  uint64_t *ticket;
  double *to;
  bool (*stops)(int64_t thread);
  int64_t kind = costateFloatSums, sums = sumCount;
  bool isSerial = false;       ///< finishes as code for Vulkan does
  std::atomic<int> spoilt = 0; ///< words of warps that others have overwritten
};

int64_t integer(int64_t thread, int64_t k) {
  return (thread * 7919 + k) % 1009 - 500 + (thread % 64 == 40 ? -5000 : 0);
}

double term(int64_t thread, int64_t k) {
  return std::sin(1.0 + 3.0 * static_cast<double>(thread)) *
         std::pow(10.0, static_cast<double>(thread % 7 - k));
}

/// Before warps add up, each has a word of the same memory to itself.
void useMemory(Call &call, int64_t thread, double *memory) {
  int64_t threads = costate_device_block_threads();
  int64_t warp = (thread % threads / lanes + 1) % (threads / lanes + 1);
  for (int pass = 0; pass < 3; ++pass) {
    memory[warp] = static_cast<double>(100 * pass + warp);
    costate_device_warp_max(0);
    call.spoilt += memory[warp] != static_cast<double>(100 * pass + warp);
    costate_device_warp_max(0);
  }
}

void addUp(const uint64_t *words, int64_t thread, int64_t threads,
           std::byte *memory) {
  auto &call = *reinterpret_cast<Call *>(words[firstOwnWord]);
  auto *shared = reinterpret_cast<double *>(memory);
  if (call.stops && call.stops(thread))
    return;
  useMemory(call, thread, shared);
  auto word = [&](int64_t k) {
    return call.kind == costateFloatSums
               ? term(thread, k)
               : std::bit_cast<double>(integer(thread, k));
  };
  if (call.kind == costateLeastPair)
    costate_device_add_up_pair(call.partials, call.count, call.first, thread,
                               shared, word(0),
                               std::bit_cast<double>(thread * 7 % 5000));
  else
    for (int64_t k = 0; k < call.sums; ++k)
      costate_device_add_up(call.partials, call.count, call.first, thread,
                            shared, k, call.kind, word(k));
  auto *finish =
      call.isSerial ? costate_test_finish_sums : costate_device_finish_sums;
  finish(call.partials, call.count, call.ticket, thread, threads, shared,
         call.sums, call.kind, call.to);
}

using Entry = void(const uint64_t *, int64_t, int64_t, std::byte *);

Result<> tryLaunch(Call &call, gpu::Grid grid, uint64_t seed,
                   Entry *entry = addUp) {
  auto driver =
      simt::createDriver({.threads = 2, .seed = seed, .lanes = lanes});
  gpu::DeviceCode code;
  code.addresses["f"] = reinterpret_cast<void *>(entry);
  gpu::DeviceFunction &function = code.functions.emplace_back();
  function.symbol = "f";
  function.collective = true;
  function.sums = call.sums;
  function.oneSum = call.sums == 1 && call.kind == costateFloatSums;
  function.addsUp = true;
  auto module = driver->load(code);
  uint64_t words[firstOwnWord + 1] = {};
  words[PartialsWord] = reinterpret_cast<uint64_t>(call.partials);
  words[TicketWord] = reinterpret_cast<uint64_t>(call.ticket);
  words[firstOwnWord] = reinterpret_cast<uint64_t>(&call);
  return driver->launch(**module, "f", grid, words);
}

void launch(Call &&call, gpu::Grid grid, uint64_t seed, Entry *entry = addUp) {
  Result<> done = tryLaunch(call, grid, seed, entry);
  EXPECT_TRUE(done.ok()) << done.error().text;
  EXPECT_EQ(call.spoilt, 0) << "seed " << seed;
}

using Sums = std::vector<double>;

Sums sumsOf(gpu::Grid grid, uint64_t seed, int64_t count = sumCount,
            bool isSerial = false) {
  std::vector<double> partials(count * grid.blocks), sums(count);
  uint64_t ticket = 0;
  launch({partials.data(), grid.blocks, 0, &ticket, sums.data(), nullptr,
          costateFloatSums, count, isSerial},
         grid, seed);
  EXPECT_EQ(ticket, 0u);
  return sums;
}

void expectNear(const Sums &sums, int64_t threads) {
  for (int64_t k = 0; k < std::ssize(sums); ++k) {
    long double exact = 0, size = 0;
    for (int64_t thread = 0; thread < threads; ++thread) {
      exact += term(thread, k);
      size += std::abs(term(thread, k));
    }
    EXPECT_NEAR(sums[k], static_cast<double>(exact),
                1e-15 * static_cast<double>(size))
        << k;
  }
}

TEST(DeviceSums, AreThoseOfAllThreads) {
  for (gpu::Grid grid : {gpu::Grid{1, 1},
                         {1, 5},
                         {1, 33},
                         {1, 128},
                         {3, 128},
                         {23, 128},
                         {2, 1024},
                         {600, 32}})
    for (int64_t count : {1, 2, 7})
      expectNear(sumsOf(grid, 0, count), grid.blocks * grid.blockThreads);
}

TEST(DeviceSums, OfIntegersAndMinima) {
  for (int64_t kind : {costateIntegerSums, costateIntegerMinima})
    for (gpu::Grid grid : {gpu::Grid{1, 1}, {1, 33}, {3, 128}, {70, 64}}) {
      std::vector<double> partials(sumCount * grid.blocks), results(sumCount);
      uint64_t ticket = 0;
      launch({partials.data(), grid.blocks, 0, &ticket, results.data(), nullptr,
              kind},
             grid, 3);
      for (int64_t k = 0; k < sumCount; ++k) {
        int64_t sum = 0, least = INT64_MAX;
        for (int64_t thread = 0; thread < grid.blocks * grid.blockThreads;
             ++thread) {
          sum += integer(thread, k);
          least = std::min(least, integer(thread, k));
        }
        EXPECT_EQ(std::bit_cast<int64_t>(results[k]),
                  kind == costateIntegerSums ? sum : least);
      }
    }
}

/// Of equal keys the least place counts.
TEST(DeviceSums, OfPairs) {
  for (gpu::Grid grid :
       {gpu::Grid{1, 1}, {1, 33}, {3, 128}, {70, 64}, {9, 512}})
    for (uint64_t seed : {0, 3, 4}) {
      std::vector<double> partials(sumCount * grid.blocks), results(sumCount);
      uint64_t ticket = 0;
      launch({partials.data(), grid.blocks, 0, &ticket, results.data(), nullptr,
              costateLeastPair},
             grid, seed);
      std::pair least(INT64_MAX, INT64_MAX);
      for (int64_t thread = 0; thread < grid.blocks * grid.blockThreads;
           ++thread)
        least =
            std::min(least, std::pair(integer(thread, 0), thread * 7 % 5000));
      EXPECT_EQ(std::bit_cast<int64_t>(results[0]), least.first);
      EXPECT_EQ(std::bit_cast<int64_t>(results[1]), least.second);
    }
}

TEST(DeviceSums, HaveTheSameBitsInAnyOrderOfThreads) {
  gpu::Grid grid{9, 128};
  Sums sums = sumsOf(grid, 0);
  for (uint64_t seed = 1; seed < 12; ++seed) {
    EXPECT_EQ(sumsOf(grid, seed), sums) << seed;
    EXPECT_EQ(sumsOf(grid, seed, 1)[0], sums[0]) << seed;
  }
}

double warpSum(std::vector<double> terms) {
  for (size_t step = terms.size() / 2; step; step /= 2)
    for (size_t lane = 0; lane < step; ++lane)
      terms[lane] += terms[lane + step];
  return terms[0];
}

template <class TermOf> double blockSum(int64_t threads, TermOf &&termOf) {
  double sum = 0;
  for (int64_t warp = 0; warp < threads / lanes; ++warp) {
    std::vector<double> terms;
    for (int64_t lane = 0; lane < lanes; ++lane)
      terms.push_back(termOf(lanes * warp + lane));
    sum = warp == 0 ? warpSum(terms) : sum + warpSum(terms);
  }
  return sum;
}

/// What the blocks leave of sum `k` is added by so many threads.
double inOrder(gpu::Grid grid, int64_t k, int64_t finishing) {
  std::vector<double> partials;
  for (int64_t block = 0; block < grid.blocks; ++block)
    partials.push_back(blockSum(grid.blockThreads, [&](int64_t thread) {
      return term(grid.blockThreads * block + thread, k);
    }));
  return blockSum(finishing, [&](int64_t thread) {
    double sum = 0;
    for (int64_t at = thread; at < grid.blocks; at += finishing)
      sum += partials[at];
    return sum;
  });
}

/// As the lanes of a GPU add, then warps, then blocks. Of many blocks a single
/// sum is finished by a block, others by warps.
TEST(DeviceSums, AreAddedInTheOrderOfTheGrid) {
  EXPECT_EQ(sumsOf({70, 64}, 5)[1], inOrder({70, 64}, 1, 32));
  EXPECT_EQ(sumsOf({300, 64}, 5)[1], inOrder({300, 64}, 1, 32));
  EXPECT_EQ(sumsOf({256, 64}, 5, 1)[0], inOrder({256, 64}, 0, 32));
  EXPECT_EQ(sumsOf({257, 64}, 5, 1)[0], inOrder({257, 64}, 0, 64));
}

TEST(DeviceSums, WarpsOf64LanesAddUpInTheirOrder) {
  WideWarps wide;
  for (gpu::Grid grid :
       {gpu::Grid{1, 1}, {1, 33}, {1, 65}, {3, 128}, {2, 1024}, {600, 64}})
    for (int64_t count : {1, 2, 7})
      expectNear(sumsOf(grid, 0, count), grid.blocks * grid.blockThreads);
  EXPECT_EQ(sumsOf({70, 128}, 5)[1], inOrder({70, 128}, 1, 64));
  EXPECT_EQ(sumsOf({256, 64}, 5, 1)[0], inOrder({256, 64}, 0, 64));
  EXPECT_EQ(sumsOf({257, 128}, 5, 1)[0], inOrder({257, 128}, 0, 128));
}

TEST(DeviceSums, OfVulkanAreFinishedByTheBlock) {
  for (int64_t count : {1, 3})
    for (gpu::Grid grid : {gpu::Grid{1, 32}, {70, 64}, {300, 64}}) {
      Sums sums = sumsOf(grid, 5, count, /*isSerial=*/true);
      for (int64_t k = 0; k < count; ++k)
        EXPECT_EQ(sums[k], inOrder(grid, k, grid.blockThreads)) << k;
    }
}

TEST(DeviceSums, TheLastOfSeveralLaunchesFinishes) {
  gpu::Grid sweep{4, 128}, drain{2, 64};
  std::vector<double> partials(6 * sumCount), sums(sumCount, 7);
  uint64_t ticket = 0;
  launch({partials.data(), 6, 0, nullptr, sums.data(), nullptr}, sweep, 1);
  EXPECT_EQ(sums, Sums(sumCount, 7));
  launch({partials.data(), 6, 4, &ticket, sums.data(), nullptr}, drain, 2);
  EXPECT_EQ(ticket, 0u);
  Sums together(sumCount), first = sumsOf(sweep, 0), second = sumsOf(drain, 0);
  for (int64_t k = 0; k < sumCount; ++k)
    EXPECT_NEAR(sums[k], first[k] + second[k], 1e-12 * std::abs(sums[k])) << k;
}

/// They are there for the next launch again, also where a block adds nothing.
TEST(DeviceSums, PartsThatAreWaitedFor) {
  for (gpu::Grid grid : {gpu::Grid{2, 32}, {70, 64}, {256, 64}}) {
    std::vector<double> parts(costateFewParts);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Sums sum(1);
      launch({parts.data(), grid.blocks, 0,
              reinterpret_cast<uint64_t *>(parts.data()), sum.data(), nullptr,
              costateFloatSums, 1},
             grid, seed);
      EXPECT_EQ(sum[0], inOrder(grid, 0, 32));
      EXPECT_EQ(parts, Sums(costateFewParts));
    }
  }
}

void addNothing(const uint64_t *words, int64_t thread, int64_t threads,
                std::byte *memory) {
  auto &call = *reinterpret_cast<Call *>(words[firstOwnWord]);
  auto *shared = reinterpret_cast<double *>(memory);
  costate_device_add_up(call.partials, call.count, 0, thread, shared, 0,
                        call.kind, 0.0);
  costate_device_finish_sums(call.partials, call.count, call.ticket, thread,
                             threads, shared, 1, call.kind, call.to);
}

TEST(DeviceSums, ANothingThatIsWaitedForComes) {
  std::vector<double> parts(costateFewParts);
  double sum = 7;
  launch({parts.data(), 5, 0, reinterpret_cast<uint64_t *>(parts.data()), &sum,
          nullptr, costateFloatSums, 1},
         {5, 64}, 0, &addNothing);
  EXPECT_EQ(sum, 0);
  EXPECT_FALSE(std::signbit(sum));
}

/// Lanes of block 0 wait for different things.
void addUpButInBlock0(const uint64_t *words, int64_t thread, int64_t threads,
                      std::byte *memory) {
  if (thread == 0)
    costate_device_warp_max_at(0, 1);
  else if (thread < costate_device_block_threads())
    costate_device_warp_max_at(0, 2);
  addUp(words, thread, threads, memory);
}

TEST(DeviceSums, ABlockThatFailsIsNotWaitedFor) {
  std::vector<double> parts(costateFewParts);
  double sum = 7;
  Call call{parts.data(),
            5,
            0,
            reinterpret_cast<uint64_t *>(parts.data()),
            &sum,
            nullptr,
            costateFloatSums,
            1};
  Result<> done = tryLaunch(call, {5, 64}, 0, &addUpButInBlock0);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Internal);
}

/// Sums of a launch that fails mean nothing; it ends all the same.
TEST(DeviceSums, ThreadsThatStopAreNotWaitedFor) {
  std::vector<double> partials(8 * sumCount), sums(sumCount);
  uint64_t ticket = 0;
  auto stops = [](int64_t thread) { return thread % 40 == 0 || thread > 900; };
  launch({partials.data(), 8, 0, &ticket, sums.data(), stops}, {8, 128}, 0);
}

} // namespace
