/// Sorting by depth, on the host as a GPU.

#include "runtime/gpu/Sort.h"

#include "Labels.h"
#include "runtime/simt/SimtDevice.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

COSTATE_LABEL("Sort.IsByDepthDeepestFirst", slow);

extern "C" {
uint64_t costate_device_sort_begin(SortWorker *worker, const SortCall *call,
                                   uint64_t thread, std::byte *memory,
                                   uint64_t place);
uint64_t costate_device_sort_rounds(const SortWorker *worker);
uint64_t costate_device_sort_work_item(const SortWorker *worker,
                                       uint64_t round);
void costate_device_sort_take(SortWorker *worker, uint64_t round, uint64_t item,
                              uint64_t depth);
uint64_t costate_device_sort_next(SortWorker *worker);
void costate_device_sort_end(const SortWorker *worker);
}

namespace costate::runtime::gpu {
namespace {

/// Of the order that a block finds when it has sorted: all shall find the whole
/// of it.
uint64_t checksum(const SortCall &call) {
  uint64_t sum = 0;
  if (call.order)
    for (uint64_t k = 0; k < call.control->ordered; ++k)
      sum = sum * 31 + call.order[k];
  return sum;
}

/// As compiled code: word 0 is where the depths are, word 1 counts those that
/// are asked for; word 2 is where each block leaves a checksum of the order.
void sortDepths(const uint64_t *words, int64_t thread, int64_t,
                std::byte *memory) {
  auto *depths = reinterpret_cast<const int64_t *>(words[0]);
  auto *asked = reinterpret_cast<std::atomic<uint64_t> *>(words[1]);
  auto *sums = reinterpret_cast<uint64_t *>(words[2]);
  const auto &call = *reinterpret_cast<const SortCall *>(words + 3);
  SortWorker worker;
  uint64_t more = costate_device_sort_begin(
      &worker, &call, static_cast<uint64_t>(thread), memory, TapeAnywhere);
  for (; more; more = costate_device_sort_next(&worker)) {
    uint64_t rounds = costate_device_sort_rounds(&worker);
    for (uint64_t k = 0; k < rounds; ++k) {
      uint64_t item = costate_device_sort_work_item(&worker, k);
      bool isThere = item != ~uint64_t(0);
      *asked += isThere;
      costate_device_sort_take(
          &worker, k, item, isThere ? static_cast<uint64_t>(depths[item]) : 0);
    }
  }
  costate_device_sort_end(&worker);
  if (worker.runs && worker.thread == 0)
    sums[static_cast<uint64_t>(thread) / call.blockThreads] = checksum(call);
}

int lanes = 32; ///< of a warp

struct Bench {
  const int threads;
  const Grid grid;
  const size_t sharedPerBlock;
  std::shared_ptr<Driver> driver =
      simt::createDriver({.threads = threads,
                          .sharedPerBlock = sharedPerBlock,
                          .lanes = lanes,
                          .blockThreads = 1024});
  Memory memory{driver, size_t(1) << 30};
  Sorter sorter{memory, Sorting::IfItPays};
  SortReport report{};
  SortHistory history{&report, &report};
  DeviceCode code;
  std::shared_ptr<Module> module;
  std::atomic<uint64_t> asked = 0; ///< depths

  explicit Bench(int threads = 2, Grid grid = {4, TAPE_BLOCK_THREADS},
                 size_t sharedPerBlock = simt::Options().sharedPerBlock)
      : threads(threads), grid(grid), sharedPerBlock(sharedPerBlock) {
    code.addresses["sort"] = reinterpret_cast<void *>(&sortDepths);
    DeviceFunction &function = code.functions.emplace_back();
    function.symbol = "sort";
    function.collective = function.sorts = true;
    function.sortCosts.iteration = int64_t(1) << 40; // it pays soon
    module = *driver->load(code);
  }

  /// Empty: as they are.
  std::vector<unsigned> sort(const std::vector<int64_t> &depths) {
    SortedLaunch launch{code.functions[0], history, depths.size()};
    auto plan = sorter.plan(launch, grid, sorter.decide(launch));
    EXPECT_TRUE(plan.ok());
    const SortCall &call = plan->call;
    std::vector<uint64_t> words(3 + sizeof call / 8);
    std::vector<uint64_t> sums(static_cast<size_t>(grid.blocks));
    words[0] = reinterpret_cast<uint64_t>(depths.data());
    words[1] = reinterpret_cast<uint64_t>(&asked);
    words[2] = reinterpret_cast<uint64_t>(sums.data());
    std::memcpy(words.data() + 3, &call, sizeof call);
    EXPECT_TRUE(
        driver->launch(*module, "sort", grid, words, plan->sharedBytes).ok());
    looked = call.chunks > 0;
    if (!plan->sorts())
      return {};
    for (uint64_t sum : sums)
      EXPECT_EQ(sum, checksum(call)) << "a block went on too early";
    return {call.order, call.order + call.control->ordered};
  }
  bool looked = false; ///< at the depths, in the last launch
};

void expectSorted(const std::vector<unsigned> &order,
                  const std::vector<int64_t> &depths) {
  std::vector<unsigned> numbers = order;
  std::ranges::sort(numbers);
  for (size_t k = 0; k < numbers.size(); ++k)
    ASSERT_EQ(numbers[k], k);
  double least = INFINITY;
  for (unsigned k : order) {
    auto depth =
        static_cast<double>(std::clamp(depths[k], int64_t(0), int64_t(65535)));
    ASSERT_LE(depth, least * (1 + 1.0 / 32));
    least = std::min(least, depth);
  }
}

std::vector<int64_t> someDepths(size_t count, int64_t most) {
  std::vector<int64_t> depths(count);
  std::mt19937_64 random(count);
  for (int64_t &depth : depths)
    depth = static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  return depths;
}

TEST(Sort, IsByDepthDeepestFirst) {
  for (size_t count : {33, 64, 511, 1000, 5000, 40000})
    for (int64_t most : {1, 2, 33, 100, 60000}) {
      SCOPED_TRACE(std::to_string(count) + " below " + std::to_string(most));
      Bench bench;
      bench.report = {0, 1, 1, 1, 1};
      for (int launch = 0; launch < 2; ++launch) {
        std::vector<int64_t> depths = someDepths(count, most);
        bench.report.rounds = bench.report.iterations + 1;
        std::vector<unsigned> order = bench.sort(depths);
        ASSERT_EQ(order.size(), count);
        expectSorted(order, depths);
      }
    }
}

/// Blocks that start late find nothing left to count; those that had it place
/// what they could not keep.
TEST(Sort, NeedsNoMoreThanOneBlockAtATime) {
  for (int threads : {1, 2})
    for (Grid grid : {Grid{1, 256}, Grid{2, 64}, Grid{7, 32}, Grid{40, 256}}) {
      SCOPED_TRACE(std::to_string(grid.blocks) + " blocks of " +
                   std::to_string(grid.blockThreads) + " on " +
                   std::to_string(threads) + " threads");
      Bench bench(threads, grid);
      for (size_t count : {33, 2049, 30000}) {
        std::vector<int64_t> depths = someDepths(count, 300);
        bench.report = {0, 1, 1, 1, 1};
        std::vector<unsigned> order = bench.sort(depths);
        ASSERT_EQ(order.size(), count);
        expectSorted(order, depths);
      }
    }
}

TEST(Sort, AsksOnceForDepthsThatABlockCanKeep) {
  for (size_t count : {5000, 70000}) {
    Bench bench(1, {1, TAPE_BLOCK_THREADS});
    bench.report = {0, 1, 1, 1, 1};
    std::vector<int64_t> depths = someDepths(count, 300);
    expectSorted(bench.sort(depths), depths);
    EXPECT_EQ(bench.asked, count < 10000 ? count : 2 * count);
  }
}

TEST(Sort, TakesAnyDepth) {
  Bench bench;
  std::vector<int64_t> depths = someDepths(300, 50);
  depths[7] = INT64_MAX;
  depths[10] = int64_t(1) << 40;
  bench.report = {0, 1, 1, 1, 1};
  expectSorted(bench.sort(depths), depths);
  EXPECT_EQ(bench.report.deepest, uint64_t(1) << 31);
}

TEST(Sort, LeavesOutWhatHasNoEffect) {
  Bench bench;
  bench.report = {0, 1, 1, 1, 1};
  std::vector<int64_t> depths(2000, 7);
  for (size_t k = 0; k < depths.size(); ++k)
    if (k % 3)
      depths[k] = k % 2 ? -1 : INT64_MIN;
  std::vector<unsigned> order = bench.sort(depths);
  std::ranges::sort(order);
  ASSERT_EQ(order.size(), 667u);
  for (size_t k = 0; k < order.size(); ++k)
    EXPECT_EQ(order[k], 3 * k);
  EXPECT_EQ(bench.report.passing, 667u);
  EXPECT_EQ(bench.report.iterations, 667u * 7);
  EXPECT_EQ(bench.report.rounds, 2000u * 7);
  depths.assign(2000, -1);
  bench.sort(depths);
  EXPECT_EQ(bench.report.passing, 0u);
  EXPECT_EQ(bench.report.rounds, 0u);
}

void expectDepthsOfTiles() {
  Bench bench;
  auto perTile = static_cast<size_t>(lanes);
  std::vector<int64_t> depths = someDepths(3000, 200);
  uint64_t iterations = 0, rounds = 0;
  for (size_t start = 0; start < depths.size(); start += perTile) {
    auto first = depths.begin() + static_cast<ptrdiff_t>(start);
    auto size = std::min(perTile, depths.size() - start);
    auto last = first + static_cast<ptrdiff_t>(size);
    iterations +=
        static_cast<uint64_t>(std::accumulate(first, last, int64_t(0)));
    rounds += static_cast<uint64_t>(*std::max_element(first, last)) * size;
  }
  auto expectReport = [&] {
    EXPECT_EQ(bench.report.iterations, iterations);
    EXPECT_EQ(bench.report.rounds, rounds);
    EXPECT_EQ(bench.report.deepest,
              static_cast<uint64_t>(*std::ranges::max_element(depths)));
    EXPECT_EQ(bench.report.workItems, depths.size());
  };
  EXPECT_TRUE(bench.sort(depths).empty()) << "the first launch only looks";
  expectReport();
  bench.report.iterations = 0;
  EXPECT_FALSE(bench.sort(depths).empty());
  expectReport();
  depths.assign(3000, 7);
  EXPECT_FALSE(bench.sort(depths).empty()) << "it is not known yet";
  EXPECT_TRUE(bench.sort(depths).empty()) << "all are equal";
  EXPECT_EQ(bench.report.rounds, bench.report.iterations);
}

TEST(Sort, SaysHowDeepTilesAre) { expectDepthsOfTiles(); }

TEST(Sort, OfWarpsOf64Lanes) {
  lanes = 64;
  expectDepthsOfTiles();
  std::vector<int64_t> depths = someDepths(5000, 300);
  Bench bench;
  bench.sort(depths);
  expectSorted(bench.sort(depths), depths);
  lanes = 32;
}

TEST(Sort, LooksNowAndThenAndThenNoticesChanges) {
  Bench bench;
  std::vector<int64_t> depths(100, 5);
  int looks = 0;
  for (int k = 0; k < 100; ++k) {
    EXPECT_TRUE(bench.sort(depths).empty());
    looks += bench.looked;
  }
  EXPECT_EQ(looks, 4);
  depths[3] = 1000;
  int later = 0;
  while (bench.sort(depths).empty())
    ++later;
  EXPECT_LE(later, 33);
}

TEST(Sort, IsNotDoneWithoutMemory) {
  Bench bench;
  std::vector<int64_t> depths = someDepths(3000, 200);
  bench.sort(depths);
  auto most = bench.memory.allocate((size_t(1) << 30) - 10000);
  ASSERT_TRUE(most.ok());
  EXPECT_TRUE(bench.sort(depths).empty());
  EXPECT_EQ(bench.sorter.bytes(), 0u);
  bench.memory.release(*most, (size_t(1) << 30) - 10000);
  bench.sorter.clear(); // as when memory has been found
  EXPECT_FALSE(bench.sort(depths).empty());
  EXPECT_LE(bench.sorter.bytes(), 40000u);
}

TEST(Sort, IsNotDoneWithTooLittleBlockMemory) {
  std::vector<int64_t> depths = someDepths(1000, 100);
  for (size_t missing : {0, 8}) {
    Bench bench(2, {4, TAPE_BLOCK_THREADS}, leastSortMemory - missing);
    bench.sort(depths); // looks at them
    EXPECT_EQ(bench.sort(depths).size(), missing ? 0 : depths.size());
  }
}

TEST(Sort, PaysWhereLanesWait) {
  SortCosts costs{
      .iteration = 25, .uncoalescedWorkItem = 300, .uncoalescedIteration = 0};
  uint64_t n = 1 << 20;
  EXPECT_TRUE(sortingPays({64 * n, 256 * n, 985, n, n}, costs, n));
  EXPECT_FALSE(sortingPays({64 * n, 70 * n, 80, n, n}, costs, n));
  EXPECT_FALSE(sortingPays({64 * n, 256 * n, 985, n, n}, costs, 1000));
  EXPECT_FALSE(sortingPays({}, costs, n));
  SortReport sparse{2 * n, 30 * n, 32, n, n};
  EXPECT_FALSE(sortingPays(sparse, costs, n));
  sparse.passing = n / 16;
  EXPECT_TRUE(sortingPays(sparse, costs, n));
  costs.uncoalescedIteration = 200;
  EXPECT_FALSE(sortingPays({64 * n, 256 * n, 985, n, n}, costs, n));
}

} // namespace
} // namespace costate::runtime::gpu
