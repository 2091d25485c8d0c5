/// Launches of hand-written code: the bodies here do what compiled code does.

#include "runtime/cpu/Launch.h"
#include "Labels.h"
#include "runtime/cpu/CpuDevice.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

COSTATE_LABEL("Launch.ThreadsMayExceedTheCores", slow);

using namespace costate;
using namespace costate::runtime;

namespace {
/// Slot 0 of every launch here: what the entry passes to its body as frame.
struct Frame {
  std::atomic<int> *visits = nullptr;
  double *out = nullptr;
  double *sums = nullptr;
  int64_t workItems = 0;
  int64_t depth = 0; ///< f64 values that work item `deep` pushes
  int64_t deep = 0;
  bool fails = false;
};

Frame *frameOf(const uint64_t *arguments) {
  return reinterpret_cast<Frame *>(arguments[0]);
}

void push(Worker *worker, double value) {
  if (worker->tapeEnd - worker->tapeTop < 8)
    costate_tape_grow(worker, 8, 0);
  std::memcpy(worker->tapeTop, &value, 8);
  worker->tapeTop += 8;
}

double pop(Worker *worker) {
  double value;
  worker->tapeTop -= 8;
  std::memcpy(&value, worker->tapeTop, 8);
  return value;
}

KernelCode codeOf(Entry entry, bool growsTape = false) {
  KernelCode code;
  code.name = "hand";
  code.entry = entry;
  code.sites = {Loc("hand.cpp", 7, 3)};
  code.growsTape = growsTape;
  code.recordBytes = 8;
  code.parameters = {{Parameter::Role::Primal, 1}};
  return code;
}

std::shared_ptr<Device> open(int threads, size_t limit = 1u << 30) {
  return *openCpu(threads, limit);
}

Result<LaunchReport> run(Device &device, const KernelCode &code, Frame &frame,
                         std::span<const Buffer> adjoints = {},
                         bool deterministic = false) {
  uint64_t arguments[] = {reinterpret_cast<uint64_t>(&frame)};
  return device.launch({&code, arguments, adjoints, deterministic});
}
} // namespace

static void visitBody(const void *raw, Worker *, int64_t begin, int64_t end,
                      double *sums) {
  const Frame &frame = *static_cast<const Frame *>(raw);
  for (int64_t i = begin; i < end; ++i) {
    frame.visits[i].fetch_add(1);
    sums[0] += std::sin(double(i)) * 1e10;
    sums[1] += 1;
  }
}

static void visitEntry(Launch *launch, Worker *, const uint64_t *arguments) {
  Frame *frame = frameOf(arguments);
  costate_range(launch, visitBody, frame, frame->workItems, frame->sums, 2, 0,
                0, 0, 1);
}

TEST(Launch, EveryWorkItemRunsOnceAndSumsDoNotDependOnThreads) {
  for (int64_t n : {0, 1, 2, 63, 64, 65, 1000, 4097, 300001}) {
    double first = 0;
    for (int threads : {1, 2, 7}) {
      std::shared_ptr<Device> device = open(threads);
      std::vector<std::atomic<int>> visits(std::max<int64_t>(n, 1));
      double sums[2] = {99, 99};
      Frame frame{visits.data(), nullptr, sums, n};
      ASSERT_TRUE(run(*device, codeOf(visitEntry), frame).ok());
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(visits[i].load(), 1);
      EXPECT_EQ(sums[1], double(std::max<int64_t>(n, 0)));
      if (threads == 1)
        first = sums[0];
      EXPECT_EQ(std::memcmp(&sums[0], &first, 8), 0);
    }
  }
}

/// Work items of slabs of 100; notes chunks that share one.
static std::atomic<int> shared, owned;

static void slabBody(const void *, Worker *worker, int64_t begin, int64_t end,
                     double *sums) {
  if (begin % 100 != 0 || end % 100 != 0)
    ++shared;
  owned += worker->hasSlab != 0;
  if (sums)
    sums[0] += 1;
}

static void slabEntry(Launch *launch, Worker *, const uint64_t *arguments) {
  Frame *frame = frameOf(arguments);
  costate_range(launch, slabBody, nullptr, frame->workItems, frame->sums,
                frame->sums ? 1 : 0, 0, 0, 100, 16);
}

/// The number of chunks that have whole slabs.
static int slabChunks(int threads, int64_t slabs, double *sums) {
  shared = owned = 0;
  std::shared_ptr<Device> device = open(threads);
  Frame frame{nullptr, nullptr, sums, 100 * slabs};
  EXPECT_TRUE(run(*device, codeOf(slabEntry), frame).ok());
  if (threads > 1) {
    EXPECT_EQ(owned > 0, shared == 0);
  }
  return owned;
}

TEST(Launch, ChunksAreWholeSlabsWhereTheseAreEnough) {
  double sums[1];
  EXPECT_EQ(slabChunks(2, 8, nullptr), 8);
  EXPECT_EQ(slabChunks(7, 3, nullptr), 0);
  EXPECT_EQ(slabChunks(2, 8, sums), 0);
  EXPECT_EQ(slabChunks(7, 64, sums), 64);
  EXPECT_EQ(slabChunks(2, 64, sums), 64);
  EXPECT_GT(slabChunks(1, 3, nullptr), 0);
}

/// Adds to an array of `elements` in 1000 work items.
static int64_t elements;
static std::atomic<int> addedAlone, addedShared;

static void addBody(const void *raw, Worker *worker, int64_t begin, int64_t end,
                    double *) {
  const CopyPlace &place = worker->copies[0];
  (place.isAlone ? addedAlone : addedShared) += 1;
  if (!place.isAlone)
    return;
  double *to = reinterpret_cast<double *>(place.base);
  for (int64_t i = begin; i < end; ++i)
    to[i % elements] += std::sin(double(i)) * 1e10;
}

static void addEntry(Launch *launch, Worker *, const uint64_t *arguments) {
  Frame *frame = frameOf(arguments);
  CopiedArray array{
      reinterpret_cast<std::byte *>(frame->sums), elements, 8, true, 1, false};
  costate_copies(launch, &array, 1);
  costate_range(launch, addBody, frame, frame->workItems, nullptr, 0, 0, 0, 0,
                1);
}

/// What 1000 work items add to 5.0.
static std::vector<double> addTo(int threads, int64_t count) {
  elements = count;
  addedAlone = addedShared = 0;
  std::shared_ptr<Device> device = open(threads);
  std::vector<double> sums(static_cast<size_t>(count), 5.0);
  Frame frame{nullptr, nullptr, sums.data(), 1000};
  EXPECT_TRUE(run(*device, codeOf(addEntry), frame).ok());
  return sums;
}

TEST(Launch, CopiesOfSmallArraysAreAddedUpInOneOrder) {
  std::vector<double> alone = addTo(1, 3);
  double expected[3] = {5, 5, 5};
  for (int i = 0; i < 1000; ++i)
    expected[i % 3] += std::sin(double(i)) * 1e10;
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR(alone[static_cast<size_t>(k)], expected[k], 1e-3);
  for (int threads : {2, 7}) {
    EXPECT_EQ(addTo(threads, 3), alone);
    EXPECT_EQ(addedShared, 0);
  }
}

TEST(Launch, ThreadsHaveCopiesOfLargerArrays) {
  std::vector<double> alone = addTo(1, 400);
  EXPECT_EQ(addedShared, 0);
  for (int threads : {2, 3}) {
    std::vector<double> sums = addTo(threads, 400);
    EXPECT_EQ(addedShared, 0);
    for (size_t k = 0; k < sums.size(); ++k)
      EXPECT_NEAR(sums[k], alone[k], 1e-3);
  }
}

TEST(Launch, LargeArraysHaveNoCopies) {
  for (auto [threads, count] : {std::pair(2, 1001), {4, 400}}) {
    addTo(threads, count);
    EXPECT_EQ(addedAlone, 0);
  }
  addTo(1, 1001);
  EXPECT_EQ(addedShared, 0);
}

/// Work items take so long that several threads take part.
template <class T>
static void addOneBody(const void *, Worker *worker, int64_t begin, int64_t end,
                       double *) {
  for (int64_t i = begin; i < end; ++i) {
    for (int k = 0; k < 2; ++k)
      reinterpret_cast<T *>(worker->copies[k].base)[i % 200] += T(i + k);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// Adds to two arrays of 200 elements, which begin with 7, by 2000 work items.
template <class T>
static void addOneEntry(Launch *launch, Worker *, const uint64_t *arguments) {
  T *first = reinterpret_cast<T *>(frameOf(arguments)->sums);
  CopiedArray arrays[2];
  for (int k = 0; k < 2; ++k)
    arrays[k] = {reinterpret_cast<std::byte *>(first + 200 * k),
                 200,
                 sizeof(T),
                 std::is_floating_point_v<T>,
                 1,
                 false};
  costate_copies(launch, arrays, 2);
  costate_range(launch, addOneBody<T>, nullptr, 2000, nullptr, 0, 0, 0, 0, 1);
}

template <class T> static void expectCopiesOfThreads() {
  for (int threads : {1, 2, 5}) {
    std::shared_ptr<Device> device = open(threads);
    std::vector<T> sums(400, T(7));
    Frame frame{nullptr, nullptr, reinterpret_cast<double *>(sums.data()), 0};
    ASSERT_TRUE(run(*device, codeOf(addOneEntry<T>), frame).ok());
    for (int k = 0; k < 2; ++k)
      for (int j = 0; j < 200; ++j)
        EXPECT_EQ(sums[200 * k + j], T(7 + 9000 + 10 * (j + k))) << threads;
  }
}

TEST(Launch, CopiesOfThreadsHaveTheTypeOfTheArray) {
  expectCopiesOfThreads<double>();
  expectCopiesOfThreads<float>();
  expectCopiesOfThreads<int64_t>();
  expectCopiesOfThreads<int32_t>();
}

/// Of what is not added to, nothing is touched: it may not be there.
TEST(Launch, CopiesOfWhatNobodyAddsToAreNotAddedUp) {
  std::shared_ptr<Device> device = open(2);
  Frame frame;
  KernelCode code = codeOf([](Launch *launch, Worker *, const uint64_t *) {
    CopiedArray array{nullptr, 400, 8, true, 1, false};
    costate_copies(launch, &array, 1);
    costate_range(
        launch,
        [](const void *, Worker *, int64_t, int64_t, double *) {
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        },
        nullptr, 1000, nullptr, 0, 0, 0, 0, 1);
  });
  EXPECT_TRUE(run(*device, code, frame).ok());
}

TEST(Launch, ChunksAreFewAndNeverEmpty) {
  for (int64_t n : {1l, 100l, 5000l, 1l << 20, INT64_MAX}) {
    int64_t size = cpu::chunkSize(n, false, 1);
    EXPECT_GE(size, 1);
    EXPECT_LE(size, 32768);
    if (n <= 1 << 20) {
      EXPECT_LE((n + size - 1) / size, 256);
    }
  }
}

static std::atomic<int> atOnce, mostAtOnce;

static void slowBody(const void *, Worker *, int64_t, int64_t, double *) {
  int now = atOnce.fetch_add(1) + 1;
  for (int seen = mostAtOnce;
       seen < now && !mostAtOnce.compare_exchange_weak(seen, now);) {
  }
  // A loaded machine is slow to start threads.
  for (int wait = 0; wait < 2000 && mostAtOnce <= 4; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  atOnce.fetch_sub(1);
}

TEST(Launch, ThreadsMayExceedTheCores) {
  mostAtOnce = 0;
  std::shared_ptr<Device> device = open(7);
  Frame frame;
  KernelCode code = codeOf([](Launch *launch, Worker *, const uint64_t *) {
    costate_range(launch, slowBody, nullptr, 60, nullptr, 0, 0, 0, 0, 1);
  });
  ASSERT_TRUE(run(*device, code, frame).ok());
  EXPECT_GT(mostAtOnce, 4);
  EXPECT_LE(mostAtOnce, 7);
}

/// Work item i pushes i % 10 values, the deep one many; then pops them, and
/// adds their sum to out[i].
static void tapeBody(const void *raw, Worker *worker, int64_t begin,
                     int64_t end, double *) {
  const Frame &frame = *static_cast<const Frame *>(raw);
  bool dry = costate_dry_run(worker);
  for (int64_t i = begin; i < end; ++i) {
    int64_t depth = i == frame.deep ? frame.depth : i % 10;
    for (int64_t k = 0; k < depth; ++k)
      push(worker, double(k));
    if (dry) {
      worker->tapeTop = worker->tapeBase;
      continue;
    }
    for (int64_t k = depth; k-- > 0;)
      frame.out[i] += pop(worker);
    if (frame.fails && i == frame.workItems / 2)
      costate_index_error(worker, 0, 0, 0, 12, 10);
  }
}

static void tapeEntry(Launch *launch, Worker *serial,
                      const uint64_t *arguments) {
  Frame *frame = frameOf(arguments);
  push(serial, 42);
  costate_range(launch, tapeBody, frame, frame->workItems, nullptr, 0, 0, 0, 0,
                1);
  if (pop(serial) != 42)
    costate_step_zero(serial, 0);
}

class TapeLaunch : public testing::TestWithParam<int64_t> {
protected:
  void start(size_t limit) {
    device = open(3, limit);
    adjoint = *device->allocate(static_cast<size_t>(n) * 8);
    frame.out = reinterpret_cast<double *>(adjoint.address);
    frame.workItems = n;
  }
  void TearDown() override {
    if (device)
      device->release(adjoint);
  }
  Result<LaunchReport> launch() {
    return run(*device, codeOf(tapeEntry, true), frame, {&adjoint, 1});
  }
  bool unchanged() {
    return std::all_of(frame.out, frame.out + n,
                       [](double x) { return x == 1; });
  }
  /// Small adjoints are copied, large ones measured beforehand.
  const int64_t n = GetParam();
  std::shared_ptr<Device> device;
  Buffer adjoint;
  Frame frame;
};

INSTANTIATE_TEST_SUITE_P(AdjointSizes, TapeLaunch,
                         testing::Values(1000, 300000));

TEST_P(TapeLaunch, TapesGrowAsDeepAsNeeded) {
  start(1u << 30);
  frame.depth = 1000000;
  frame.deep = n / 3;
  Result<LaunchReport> report = launch();
  ASSERT_TRUE(report.ok()) << report.error().text;
  EXPECT_EQ(frame.out[frame.deep], 1e6 * (1e6 - 1) / 2);
  EXPECT_EQ(frame.out[9], 36);
  EXPECT_GE(report->tapeBytes, 8000000u);
  EXPECT_LE(report->tapeBytes, 16000000u);
  EXPECT_GE(device->memory().peak, 8000000u);
}

// RULE: out-of-tape
TEST_P(TapeLaunch, RunningOutOfMemoryChangesNoAdjointAndTheNextLaunchWorks) {
  start(16u << 20);
  std::fill_n(frame.out, n, 1.0);
  frame.depth = 10000000;
  frame.deep = n - 1;
  Result<LaunchReport> report = launch();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::OutOfMemory);
  for (const char *part : {"`hand`", "hand.cpp:7", "16 MiB", "needs more than"})
    EXPECT_NE(report.error().text.find(part), std::string::npos)
        << report.error().text;
  EXPECT_TRUE(unchanged());
  frame.depth = 5;
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(frame.out[frame.deep], 1 + 10);
}

TEST_P(TapeLaunch, FewerThreadsRunIfTapesForAllDoNotFit) {
  start(24u << 20);
  frame.depth = 1000000; // 8 MB each, 3 threads
  frame.deep = 0;
  Result<LaunchReport> report = launch();
  ASSERT_TRUE(report.ok()) << report.error().text;
  EXPECT_EQ(frame.out[0], 1e6 * (1e6 - 1) / 2);
  EXPECT_LE(device->memory().peak, 24u << 20);
}

TEST_P(TapeLaunch, FewerThreadsShareABudgetThatIsTooSmallForAll) {
  start(24u << 20);
  frame.depth = 400; // 3,200 bytes each, 3 threads
  frame.deep = 0;
  KernelCode code = codeOf(tapeEntry);
  auto address = reinterpret_cast<uint64_t>(&frame);
  LaunchRequest request{&code, {&address, 1}, {&adjoint, 1}};
  request.tapeBudget = 5000;
  request.isLastResort = true;
  Result<LaunchReport> report = device->launch(request);
  ASSERT_TRUE(report.ok()) << report.error().text;
  EXPECT_EQ(frame.out[0], 400 * 399 / 2.0);
  EXPECT_EQ(frame.out[9], 36);
}

static void countBody(const void *raw, Worker *, int64_t begin, int64_t end,
                      double *) {
  const Frame &frame = *static_cast<const Frame *>(raw);
  for (int64_t i = begin; i < end; ++i)
    frame.out[i] += 1;
}

static void countEntry(Launch *launch, Worker *, const uint64_t *arguments) {
  Frame *frame = frameOf(arguments);
  costate_range(launch, countBody, frame, frame->workItems, nullptr, 0, 0, 0, 0,
                1);
}

TEST_P(TapeLaunch, CodeWithoutRecordsRunsOnceWithinAnyBudget) {
  start(24u << 20);
  std::fill_n(frame.out, n, 0.0);
  KernelCode code = codeOf(countEntry);
  code.recordBytes = 0;
  auto address = reinterpret_cast<uint64_t>(&frame);
  LaunchRequest request{&code, {&address, 1}, {&adjoint, 1}};
  request.tapeBudget = 100;
  ASSERT_TRUE(device->launch(request).ok());
  EXPECT_TRUE(unchanged());
}

TEST_P(TapeLaunch, TheDeepWorkItemMayMoveToAnotherWorker) {
  start(24u << 20);
  frame.depth = 1500000;
  for (int round = 0; round < 20; ++round) {
    frame.deep = round * 37;
    Result<LaunchReport> report = launch();
    ASSERT_TRUE(report.ok()) << report.error().text;
  }
}

TEST_P(TapeLaunch, TapesOfIdleWorkersMakeRoomForArrays) {
  start(32u << 20);
  frame.depth = 2000000;
  ASSERT_TRUE(launch().ok());
  Result<Buffer> large = device->allocate(28u << 20);
  EXPECT_TRUE(large.ok());
  if (large)
    device->release(*large);
}

TEST(Launch, TheErrorOfTheLowestChunkEndsTheLaunch) {
  std::shared_ptr<Device> device = open(4);
  std::vector<double> out(1000);
  Frame frame{nullptr, out.data(), nullptr, 1000, 0, 0, true};
  Result<LaunchReport> report = run(*device, codeOf(tapeEntry), frame);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::OutOfRange);
  EXPECT_EQ(report.error().text, "kernel `hand` at hand.cpp:7: index 12 is "
                                 "outside dimension 0 of argument "
                                 "2, whose extent is 10");
  frame.fails = false;
  EXPECT_TRUE(run(*device, codeOf(tapeEntry), frame).ok());
}

/// All work items from 100 on fail, the lower they are the later.
static void lateBody(const void *, Worker *worker, int64_t begin, int64_t end,
                     double *) {
  for (int64_t i = begin; i < end; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(1000 - i));
    if (i >= 100)
      costate_index_error(worker, 0, 0, 0, i, 10);
  }
}

static void lateEntry(Launch *launch, Worker *, const uint64_t *arguments) {
  costate_range(launch, lateBody, nullptr, frameOf(arguments)->workItems,
                nullptr, 0, 0, 0, 0, 1);
}

TEST(Launch, OfSeveralErrorsTheLowestIsReported) {
  for (int threads : {1, 2, 4, 7}) {
    std::shared_ptr<Device> device = open(threads);
    Frame frame{nullptr, nullptr, nullptr, 1000};
    Result<LaunchReport> report = run(*device, codeOf(lateEntry), frame);
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().text.find("index 100 "), std::string::npos)
        << report.error().text;
  }
}

TEST(Launch, SerialErrorsEndTheLaunch) {
  std::shared_ptr<Device> device = open(2);
  Frame frame;
  KernelCode code = codeOf([](Launch *, Worker *serial, const uint64_t *) {
    push(serial, 1);
    costate_step_zero(serial, 0);
  });
  Result<LaunchReport> report = run(*device, code, frame);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::KernelFailed);
  const std::string unusable =
      "; the gradients that this launch wrote are not usable";
  EXPECT_EQ(report.error().text.find(unusable), std::string::npos);
  double adjoint = 1;
  Buffer adjoints[] = {{reinterpret_cast<std::byte *>(&adjoint), 8}};
  report = run(*device, code, frame, adjoints);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().text.find(unusable), std::string::npos);
}

/// Scatters rounding-sensitive values over a few elements.
static void scatterBody(const void *raw, Worker *worker, int64_t begin,
                        int64_t end, double *) {
  const Frame &frame = *static_cast<const Frame *>(raw);
  for (int64_t i = begin; i < end; ++i)
    for (int64_t k = 0; k < 3; ++k)
      costate_add_later_f64(worker, &frame.out[(i * 7919 + k * k) % 500],
                            std::sin(double(i + k)) *
                                std::exp2(double(i % 60)));
}

static void scatterEntry(Launch *launch, Worker *serial,
                         const uint64_t *arguments) {
  Frame *frame = frameOf(arguments);
  costate_add_later_f64(serial, &frame->out[0], 0.5);
  costate_range(launch, scatterBody, frame, frame->workItems, nullptr, 0, 0, 0,
                0, 1);
}

TEST(Launch, DeterministicScattersAreEqualToTheLastBit) {
  std::vector<double> reference;
  for (int round = 0; round < 10; ++round)
    for (int threads : {1, 2, 7}) {
      std::shared_ptr<Device> device = open(threads);
      std::vector<double> out(500);
      Frame frame{nullptr, out.data(), nullptr, 50000};
      ASSERT_TRUE(run(*device, codeOf(scatterEntry), frame, {}, true).ok());
      if (reference.empty())
        reference = out;
      ASSERT_EQ(std::memcmp(out.data(), reference.data(), 4000), 0);
    }
  EXPECT_NE(reference[1], 0);
}

TEST(Launch, DeterministicAdditionsThatDoNotFitAreAnError) {
  std::shared_ptr<Device> device = open(2, 200 << 10);
  std::vector<double> out(500);
  Frame frame{nullptr, out.data(), nullptr, 5000000};
  Result<LaunchReport> report =
      run(*device, codeOf(scatterEntry), frame, {}, true);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::OutOfMemory);
  EXPECT_NE(report.error().text.find("deterministic"), std::string::npos);
}

TEST(Launch, ManyHostThreadsLaunchAtOnce) {
  std::shared_ptr<Device> device = open(3);
  std::vector<std::thread> hosts;
  std::atomic<int> good = 0;
  for (int t = 0; t < 6; ++t)
    hosts.emplace_back([&, t] {
      std::vector<double> out(2000);
      for (int round = 0; round < 50; ++round) {
        std::fill(out.begin(), out.end(), 0.0);
        Frame frame{nullptr, out.data(),          nullptr, 2000, 20000,
                    t,       (t + round) % 5 == 0};
        Result<LaunchReport> report = run(*device, codeOf(tapeEntry), frame);
        good += report.ok() != frame.fails &&
                (frame.fails || out[9 + 10 * t] == 36);
      }
    });
  for (std::thread &host : hosts)
    host.join();
  EXPECT_EQ(good, 300);
}
