/// What the driver asks of its API, and when it waits, without a GPU.

#include "runtime/streams/StreamDriver.h"
#include "Labels.h"
#include "runtime/streams/Fakes.h"

#include <bit>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

COSTATE_LABEL("*.AnAllocationThatFailsWaitsForWhatWasReleased*", slow);

using namespace costate;
using namespace costate::runtime;
using namespace costate::runtime::streams;

namespace {

class StreamQueue : public testing::TestWithParam<Fake> {
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
    Result<std::shared_ptr<gpu::Driver>> opened = GetParam().open(fake);
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
      module = *driver->load({.image = GetParam().image});
    uint64_t words[] = {reinterpret_cast<uint64_t>(to), count, value};
    check(driver->launch(*module, "add", {1, 32}, words));
  }
  std::vector<uint64_t> read(const std::byte *from, size_t count) {
    std::vector<uint64_t> values(count);
    check(driver->download(values.data(), from, 8 * count));
    return values;
  }
  uint64_t waits() { return driver->counters().synchronizations; }

  std::unique_ptr<FakeGpu> made = GetParam().make();
  FakeGpu &fake = *made;
  std::shared_ptr<gpu::Driver> driver;
  std::shared_ptr<gpu::Module> module;
};

TEST_P(StreamQueue, TellsWhenTheGpuHasComeSoFar) {
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

TEST_P(StreamQueue, IsInOneOrderWithTheDefaultStream) {
  EXPECT_EQ(fake.streamsOf(blockingStream), 1u);
}

TEST_P(StreamQueue, ADownloadDoesNotWaitForWhatIsQueuedAfterIt) {
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

TEST_P(StreamQueue, LargeDownloadsComeBackToo) {
  std::vector<uint64_t> sent(100000);
  std::iota(sent.begin(), sent.end(), 1);
  std::byte *memory = *driver->allocate(8 * sent.size());
  check(driver->upload(memory, sent.data(), 8 * sent.size()));
  EXPECT_EQ(read(memory, sent.size()), sent);
  driver->release(memory);
}

TEST_P(StreamQueue, UploadsWaitOnlyWhereThereIsNoRoom) {
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

TEST_P(StreamQueue, CopiesFillsAndLaunchesAreQueued) {
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

TEST_P(StreamQueue, RowsAreCopiedByOneCall) {
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

TEST_P(StreamQueue, AGraphRunsAsOftenAsItIsReplayed) {
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

TEST_P(StreamQueue, WhatAGraphDoesNotNeedGoesOnMeanwhile) {
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

TEST_P(StreamQueue, WorkGoesToTheStreamOfTheUserInOrder) {
  Stream stream = fake.makeStream();
  std::byte *memory = *driver->allocate(8);
  auto *number = reinterpret_cast<uint64_t *>(memory);
  uint64_t one = 1;
  check(driver->upload(memory, &one, 8));
  check(driver->useStream(stream));
  check(driver->useStream(stream));
  add(memory, 1, 2);
  FakeGpu::append(stream, [=] { *number *= 10; });
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
TEST_P(StreamQueue, StreamsOfOthersWaitForTheDevice) {
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
    FakeGpu::append(handle, [&] { seen = *number; });
    FakeGpu::run(handle);
    EXPECT_EQ(seen, 3u);
  }
  EXPECT_EQ(waits(), 0u);
  driver->release(memory);
  driver = nullptr;
  fake.api().destroyStream(theirs);
}

TEST_P(StreamQueue, TheStreamInUseHasNothingToWaitFor) {
  Stream stream = fake.makeStream();
  check(driver->useStream(stream));
  size_t events = fake.liveEvents();
  ASSERT_TRUE(driver->letWait(stream).ok());
  EXPECT_EQ(fake.liveEvents(), events);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

/// An event cannot order what runs and what is captured.
TEST_P(StreamQueue, TheHostWaitsWhereACaptureBegins) {
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

TEST_P(StreamQueue, AStreamThatSomebodyCapturesTakesNothingByItself) {
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

TEST_P(StreamQueue, AWaitIsForTheStreamOfTheUser) {
  Stream stream = fake.makeStream();
  check(driver->useStream(stream));
  bool done = false;
  FakeGpu::append(stream, [&] { done = true; });
  check(driver->synchronize());
  EXPECT_TRUE(done);
  driver = nullptr;
  fake.api().destroyStream(stream);
}

TEST_P(StreamQueue, WithoutPoolsAReleaseWaits) {
  fake.hasPools = false;
  open();
  driver->release(*driver->allocate(80));
  EXPECT_EQ(waits(), 1u);
  EXPECT_EQ(fake.liveAllocations(), 0u);
}

TEST_P(StreamQueue, NullIsNoMemory) {
  fake.hidesThatMemoryEnds = true;
  auto first = driver->allocate(fake.memory / 2 + 1);
  auto second = driver->allocate(fake.memory / 2 + 1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::OutOfMemory);
  driver->release(*first);
}

TEST_P(StreamQueue, AnAllocationThatFailsWaitsForWhatWasReleased) {
  size_t most = fake.memory / 2 + 1;
  driver->release(*driver->allocate(most));
  EXPECT_EQ(waits(), 0u);
  Result<std::byte *> again = driver->allocate(most);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(waits(), 1u);
  driver->release(*again);
}

INSTANTIATE_TEST_SUITE_P(Fakes, StreamQueue, testing::ValuesIn(fakes),
                         nameOfFake<testing::TestParamInfo<Fake>>);

} // namespace
