/// What the driver asks of CUDA, and when it waits, without a GPU.

#include "runtime/cuda/FakeCuda.h"
#include "Labels.h"
#include "runtime/cuda/CudaDriver.h"

#include <bit>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

COSTATE_LABEL("CudaQueue.AnAllocationThatFailsWaitsForWhatWasReleased", slow);

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::cuda;

namespace {

class CudaQueue : public testing::Test {
protected:
  void SetUp() override {
    fake.kernels["add$kernel"].body = [](std::span<const uint64_t> words) {
      auto *numbers = reinterpret_cast<uint64_t *>(words[0]);
      for (uint64_t i = 0; i < words[1]; ++i)
        numbers[i] += words[2];
    };
    fake.kernels["fill$kernel"].body = [](std::span<const uint64_t> words) {
      auto *numbers = reinterpret_cast<uint64_t *>(words[0]);
      std::fill_n(numbers, words[1], words[2]);
    };
    open();
  }
  void open() {
    driver = nullptr;
    Result<std::shared_ptr<gpu::Driver>> opened = openCuda(fake.api(), 0);
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    driver = *opened;
  }
  void TearDown() override {
    module = nullptr;
    driver = nullptr;
    EXPECT_EQ(fake.liveStreams(), 0u);
    EXPECT_EQ(fake.liveEvents(), 0u);
    EXPECT_EQ(fake.livePinned(), 0u);
    EXPECT_EQ(fake.liveAllocations(), 0u);
  }

  static void check(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }
  void add(std::byte *to, uint64_t count, uint64_t value) {
    if (!module)
      module = *driver->load({});
    uint64_t words[] = {reinterpret_cast<uint64_t>(to), count, value};
    check(driver->launch(*module, "add", {1, 32}, words));
  }
  std::vector<uint64_t> read(const std::byte *from, size_t count) {
    std::vector<uint64_t> values(count);
    check(driver->download(values.data(), from, 8 * count));
    return values;
  }
  uint64_t waits() { return driver->counters().synchronizations; }

  FakeCuda fake;
  std::shared_ptr<gpu::Driver> driver;
  std::shared_ptr<gpu::Module> module;
};

TEST_F(CudaQueue, TellsWhenTheGpuHasComeSoFar) {
  auto begin = driver->mark();
  std::byte *memory = *driver->allocate(8);
  uint64_t before = waits();
  add(memory, 1, 2);
  auto end = driver->mark();
  EXPECT_EQ(waits(), before);
  int64_t from = begin->nanoseconds();
  EXPECT_EQ(end->nanoseconds() - from, 1000000); // events are 1 ms apart
  // Times are told anew from the last second on.
  for (int second = 0; second < 3; ++second) {
    auto last = driver->mark();
    fake.clock += 1500;
    int64_t earlier = last->nanoseconds();
    EXPECT_EQ(driver->mark()->nanoseconds() - earlier, 1000000);
  }
  driver->release(memory);
}

TEST_F(CudaQueue, IsInOneOrderWithTheDefaultStream) {
  EXPECT_EQ(fake.streamsOf(blockingStream), 1u);
}

TEST_F(CudaQueue, ADownloadDoesNotWaitForWhatIsQueuedAfterIt) {
  std::byte *memory = *driver->allocate(8);
  uint64_t five = 5;
  check(driver->upload(memory, &five, 8));
  fake.whileWaiting = [&] { add(memory, 1, 2); };
  EXPECT_EQ(read(memory, 1)[0], 5u);
  auto *now = reinterpret_cast<uint64_t *>(memory);
  EXPECT_EQ(*now, 5u) << "it has waited for the launch";
  EXPECT_EQ(waits(), 1u);
  EXPECT_EQ(driver->counters().downloads, 1u);
  EXPECT_EQ(read(memory, 1)[0], 7u);
  driver->release(memory);
}

TEST_F(CudaQueue, KernelsMayUseMuchSharedMemoryAfterTheyHaveAskedOnce) {
  FunctionObject &kernel = fake.kernels["add$kernel"];
  module = *driver->load({});
  uint64_t word = 0;
  uint64_t words[] = {reinterpret_cast<uint64_t>(&word), 1, 1};
  auto launch = [&](size_t bytes) {
    check(driver->launch(*module, "add", {1, 32}, words, bytes));
    EXPECT_EQ(kernel.shared, bytes);
  };
  launch(0);
  EXPECT_EQ(kernel.limitChanges, 0);
  for (size_t bytes : {46 << 10, 100 << 10, 227 << 10, 227 << 10, 100 << 10})
    launch(bytes);
  EXPECT_EQ(kernel.limitChanges, 3);
  check(driver->synchronize());
}

/// The digit says how many blocks of a multiprocessor it leaves room for.
std::string crowded(const std::string &symbol, int blocks, int privateBytes) {
  std::string depot = "\t.local .align 8 .b8 \t__local_depot0[" +
                      std::to_string(privateBytes) + "];\n";
  return ".visible .entry " + symbol +
         "(\n\t.param .align 8 .b8 words[8]\n)\n" +
         ".maxntid 256\n.minnctapersm " + std::to_string(blocks) + "\n{\n" +
         (privateBytes ? depot : "") + "\tret;\n}\n";
}

TEST_F(CudaQueue, KernelsThatLackRegistersHaveThoseOfAThirdBlock) {
  auto spill = [](int always, int crowdedBytes) {
    return [=](const std::string &text) {
      bool isCrowded = text.find("sm 3") != text.npos;
      return always + (isCrowded ? crowdedBytes : 0);
    };
  };
  auto loaded = [&](const std::string &image, const std::string &symbol) {
    auto done = driver->load({.image = image});
    EXPECT_TRUE(done.ok());
    check(driver->prepare(**done, symbol, 0));
    return fake.kernels[symbol + "$kernel"].text;
  };
  int64_t waits = driver->counters().read().synchronizations;
  auto &add = fake.kernels["add$kernel"], &fill = fake.kernels["fill$kernel"];
  std::string image = crowded("add$kernel", 3, 128);
  add.localBytes = spill(128, 200);
  EXPECT_EQ(loaded(image, "add"), crowded("add$kernel", 2, 128));
  add.localBytes = spill(128, 63);
  EXPECT_EQ(loaded(image, "add"), image); // little
  add.localBytes = spill(640, 0);
  EXPECT_EQ(loaded(image, "add"), image); // what it calls has that
  EXPECT_EQ(loaded(crowded("add$kernel", 2, 128), "add"),
            crowded("add$kernel", 2, 128)); // has them already

  add.localBytes = spill(128, 0);
  fill.localBytes = [](const std::string &text) {
    return text.find("sm 3", text.find("fill$kernel")) == text.npos ? 8 : 96;
  };
  std::string function = ".func f()\n{\n\t.local .b8 __local_depot1[96];\n}\n";
  EXPECT_EQ(loaded(image + crowded("fill$kernel", 3, 0) + function, "fill"),
            image + crowded("fill$kernel", 2, 0) + function);
  EXPECT_EQ(driver->counters().read().synchronizations, waits + 5);
}

TEST_F(CudaQueue, LargeDownloadsComeBackToo) {
  std::vector<uint64_t> sent(100000);
  std::iota(sent.begin(), sent.end(), 1);
  std::byte *memory = *driver->allocate(8 * sent.size());
  check(driver->upload(memory, sent.data(), 8 * sent.size()));
  EXPECT_EQ(read(memory, sent.size()), sent);
  driver->release(memory);
}

TEST_F(CudaQueue, UploadsWaitOnlyWhereThereIsNoRoom) {
  constexpr size_t mebi = size_t(1) << 20;
  std::vector<std::byte> data(40 * mebi, std::byte(7));
  std::byte *memory = *driver->allocate(data.size());
  check(driver->upload(memory, data.data(), 12 * mebi));
  EXPECT_EQ(waits(), 0u);
  check(driver->upload(memory, data.data(), 12 * mebi));
  EXPECT_EQ(waits(), 2u);
  check(driver->synchronize());
  driver->counters().reset();
  check(driver->upload(memory, data.data(), 12 * mebi));
  EXPECT_EQ(waits(), 0u) << "the slots were free";
  driver->release(memory);
}

TEST_F(CudaQueue, CopiesFillsAndLaunchesAreQueued) {
  std::byte *one = *driver->allocate(80), *other = *driver->allocate(80);
  double value = 1.5;
  uint8_t byte = 0;
  check(driver->fill(one, 80, &byte, 1));
  add(one, 10, 3);
  check(driver->copy(other, one, 80));
  check(driver->fill(one, 80, &value, 8));
  driver->release(one);
  EXPECT_EQ(waits(), 0u);
  EXPECT_EQ(read(other, 10), std::vector<uint64_t>(10, 3));
  Statistics seen = driver->counters().read();
  EXPECT_EQ(seen.copies, 1u);
  EXPECT_EQ(seen.fills, 2u);
  EXPECT_EQ(seen.launches, 1u) << "a fill is no launch";
  driver->release(other);
}

TEST_F(CudaQueue, RowsAreCopiedByOneCall) {
  std::vector<uint64_t> sent(200);
  std::iota(sent.begin(), sent.end(), 0);
  std::byte *memory = *driver->allocate(1600), *copy = *driver->allocate(800);
  check(driver->upload(memory, sent.data(), 1600));
  const CopyShape shape({copy, 8, 100, 8}, {memory + 8, 8, 100, 16});
  std::vector<uint64_t> expected(100);
  for (size_t k = 0; k < 100; ++k)
    expected[k] = 2 * k + 1;
  // Row by row where the pitch is too large.
  for (auto [largest, calls] : {std::pair<size_t, size_t>{16, 1}, {15, 100}}) {
    fake.largestPitch = largest;
    fake.copies = 0;
    driver->counters().reset();
    check(driver->copy(copy, memory + 8, shape));
    EXPECT_EQ(fake.copies, calls + (calls > 1));
    EXPECT_EQ(driver->counters().copies, 1u);
    EXPECT_EQ(waits(), 0u);
    EXPECT_EQ(read(copy, 100), expected);
    check(driver->fill(copy, 800, "", 1));
  }
  driver->release(memory);
  driver->release(copy);
}

TEST_F(CudaQueue, AGraphRunsAsOftenAsItIsReplayed) {
  std::byte *memory = *driver->allocate(80), *copy = *driver->allocate(80);
  double value = 1.5;
  add(memory, 10, 0);
  driver->counters().reset();
  check(driver->beginCapture());
  check(driver->fill(memory, 8, &value, 8));
  add(memory + 8, 9, 3);
  const Rows even(memory, 8, 5, 16), odd(memory + 8, 8, 5, 16);
  check(driver->copy(copy, memory, {even, even}));
  check(driver->copy(copy + 8, memory + 8, {odd, odd}));
  Result<std::shared_ptr<gpu::Captured>> graph = driver->endCapture();
  ASSERT_TRUE(graph.ok()) << graph.error().text;
  EXPECT_EQ(fake.violations, 0u);
  EXPECT_EQ(driver->counters().read(), Statistics());
  uint8_t zero = 0;
  check(driver->fill(memory, 80, &zero, 1));
  check(driver->replay(**graph));
  check(driver->replay(**graph));
  graph = std::shared_ptr<gpu::Captured>();
  std::vector<uint64_t> expected(10, 6);
  expected[0] = std::bit_cast<uint64_t>(value);
  EXPECT_EQ(read(copy, 10), expected);
  Statistics seen = driver->counters().read();
  EXPECT_EQ(seen.launches, 2u);
  EXPECT_EQ(seen.fills, 3u);
  EXPECT_EQ(seen.copies, 4u);
  EXPECT_EQ(fake.liveGraphs(), 0u);
  driver->release(memory);
  driver->release(copy);
}

TEST_F(CudaQueue, WhatAGraphDoesNotNeedGoesOnMeanwhile) {
  std::byte *memory = *driver->allocate(8);
  uint64_t five = 5;
  add(memory, 1, 0);
  check(driver->beginCapture());
  add(memory, 1, 2);
  std::jthread([&] { check(driver->upload(memory, &five, 8)); }).join();
  Result<std::shared_ptr<gpu::Captured>> graph = driver->endCapture();
  EXPECT_EQ(read(memory, 1)[0], 5u) << "the upload was captured";
  check(driver->replay(**graph));
  EXPECT_EQ(read(memory, 1)[0], 7u);
  driver->release(memory);
}

TEST_F(CudaQueue, WorkGoesToTheStreamOfTheUserInOrder) {
  Stream stream = fake.makeStream();
  std::byte *memory = *driver->allocate(8);
  auto *number = reinterpret_cast<uint64_t *>(memory);
  uint64_t one = 1;
  check(driver->upload(memory, &one, 8));
  check(driver->useStream(stream));
  check(driver->useStream(stream));
  add(memory, 1, 2);
  FakeCuda::append(stream, [=] { *number *= 10; });
  add(memory, 1, 4);
  check(driver->useStream(std::nullopt));
  add(memory, 1, 5);
  EXPECT_EQ(waits(), 0u);
  EXPECT_EQ(read(memory, 1)[0], 39u);
  driver->release(memory);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

/// What others read in their stream, without a wait of the host.
TEST_F(CudaQueue, StreamsOfOthersWaitForTheDevice) {
  Stream theirs = fake.makeStream();
  std::byte *memory = *driver->allocate(8);
  auto *number = reinterpret_cast<uint64_t *>(memory);
  uint64_t value = 1;
  for (Stream handle : {theirs, Stream(nullptr), reinterpret_cast<Stream>(1),
                        reinterpret_cast<Stream>(2)}) {
    check(driver->upload(memory, &value, 8));
    add(memory, 1, 2);
    Result<bool> waits = driver->letWait(handle);
    ASSERT_TRUE(waits.ok());
    EXPECT_TRUE(*waits);
    uint64_t seen = 0;
    FakeCuda::append(handle, [&] { seen = *number; });
    FakeCuda::run(handle);
    EXPECT_EQ(seen, 3u);
  }
  EXPECT_EQ(waits(), 0u);
  driver->release(memory);
  driver = nullptr;
  fake.api().destroyStream(theirs);
}

TEST_F(CudaQueue, TheStreamInUseHasNothingToWaitFor) {
  Stream stream = fake.makeStream();
  check(driver->useStream(stream));
  size_t events = fake.liveEvents();
  ASSERT_TRUE(driver->letWait(stream).ok());
  EXPECT_EQ(fake.liveEvents(), events);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

/// An event cannot order what runs and what is captured.
TEST_F(CudaQueue, TheHostWaitsWhereACaptureBegins) {
  Stream stream = fake.makeStream();
  std::byte *memory = *driver->allocate(8);
  uint64_t one = 1;
  check(driver->upload(memory, &one, 8));
  add(memory, 1, 2);
  GraphHandle graph = nullptr;
  fake.api().beginCapture(stream, CaptureMode::ThreadLocal);
  ASSERT_TRUE(driver->letWait(stream).ok());
  EXPECT_EQ(*reinterpret_cast<uint64_t *>(memory), 3u);
  check(driver->useStream(stream));
  check(driver->useStream(std::nullopt));
  fake.api().endCapture(stream, &graph);
  EXPECT_TRUE(graph->work.empty());
  fake.api().destroyGraph(graph);
  driver->release(memory);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

TEST_F(CudaQueue, AStreamThatSomebodyCapturesTakesNothingByItself) {
  const Api &api = fake.api();
  Stream stream = fake.makeStream();
  std::byte *memory = *driver->allocate(8), *other = *driver->allocate(8);
  uint64_t one = 1;
  auto refused = [&](const Result<> &result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::CannotCapture);
    EXPECT_NE(result.error().text.find("use_own_stream"), std::string::npos);
  };
  GraphHandle graph = nullptr;
  api.beginCapture(stream, CaptureMode::ThreadLocal);
  check(driver->useStream(stream));
  refused(driver->upload(memory, &one, 8));
  refused(driver->copy(memory, memory, 8));
  refused(driver->download(&one, memory, 8));
  refused(driver->synchronize());
  Result<std::byte *> made = driver->allocate(8);
  refused(made ? Result<>() : made.error());
  driver->release(other);
  api.endCapture(stream, &graph);
  EXPECT_TRUE(graph->work.empty());
  api.destroyGraph(graph);
  EXPECT_EQ(fake.liveAllocations(), 2u) << "released when nobody captures";
  check(driver->upload(memory, &one, 8));
  EXPECT_EQ(read(memory, 1)[0], 1u);
  driver->release(memory);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

TEST_F(CudaQueue, AWaitIsForTheStreamOfTheUser) {
  Stream stream = fake.makeStream();
  check(driver->useStream(stream));
  bool done = false;
  FakeCuda::append(stream, [&] { done = true; });
  check(driver->synchronize());
  EXPECT_TRUE(done);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

TEST_F(CudaQueue, WithoutPoolsAReleaseWaits) {
  fake.hasPools = false;
  open();
  driver->release(*driver->allocate(80));
  EXPECT_EQ(waits(), 1u);
  EXPECT_EQ(fake.liveAllocations(), 0u);
}

TEST_F(CudaQueue, AnAllocationThatFailsWaitsForWhatWasReleased) {
  size_t most = fake.memory / 2 + 1;
  driver->release(*driver->allocate(most));
  EXPECT_EQ(waits(), 0u);
  Result<std::byte *> again = driver->allocate(most);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(waits(), 1u);
  driver->release(*again);
}

} // namespace
