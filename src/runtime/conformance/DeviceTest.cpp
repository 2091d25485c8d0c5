/// What every device does, whatever it is.

#include "Labels.h"
#include "runtime/Graph.h"
#include "runtime/conformance/OnDevice.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

COSTATE_LABEL(
    "Devices/DeviceConformance.IsUsableAgainOnceMemoryIsReleased/simt", slow);

using namespace costate;
using namespace costate::runtime;
using conformance::affine;
using conformance::affineArguments;

namespace {

constexpr size_t mebi = size_t(1) << 20;

class DeviceConformance : public conformance::OnDevice {
protected:
  /// Whether the host waits for it at all.
  bool isAsynchronous() const { return device->hostCopies(); }
  bool hasStreams() const {
    const std::string &name = device->info().name;
    return name.ends_with("cuda") || name.ends_with("hip");
  }

  static void check(const Result<> &result) {
    EXPECT_TRUE(result.ok()) << result.error().text;
  }
  Buffer allocate(size_t bytes) {
    Result<Buffer> buffer = device->allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.error().text;
    return buffer ? *buffer : Buffer();
  }
  template <class T> Buffer uploaded(const std::vector<T> &values) {
    Buffer buffer = allocate(values.size() * sizeof(T));
    check(device->upload(buffer, values.data()));
    return buffer;
  }
  template <class T = uint64_t> std::vector<T> read(Buffer buffer) {
    std::vector<T> values(buffer.bytes / sizeof(T));
    check(device->download(values.data(), buffer));
    return values;
  }
  void fill(Buffer buffer, uint64_t value) {
    check(device->fill(buffer, &value, 8));
  }
  void launch(Buffer y, uint64_t factor, uint64_t term) {
    std::vector<uint64_t> arguments = affineArguments(y, factor, term);
    Result<LaunchReport> report =
        device->launch({&affine(GetParam()), arguments, {}});
    EXPECT_TRUE(report.ok()) << report.error().text;
  }
  KeptLaunch kept(Buffer y, uint64_t factor, uint64_t term) {
    return {&affine(GetParam()), affineArguments(y, factor, term), {}};
  }
  void expectOutOfMemory(size_t bytes) {
    Result<Buffer> buffer = device->allocate(bytes);
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.error().code, ErrorCode::OutOfMemory);
    EXPECT_NE(buffer.error().text.find("release arrays"), std::string::npos)
        << buffer.error().text;
  }
  void expectWorking() {
    Buffer buffer = allocate(80000);
    fill(buffer, 5);
    launch(buffer, 3, 2);
    EXPECT_EQ(read(buffer), std::vector<uint64_t>(10000, 17));
    device->release(buffer);
  }
};

std::vector<uint64_t> numbers(size_t count, uint64_t first = 1) {
  std::vector<uint64_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

//===-- Memory ------------------------------------------------------------===//

TEST_P(DeviceConformance, OthersMayWaitInsteadOfTheHost) {
  Buffer y = uploaded<uint64_t>({1, 2});
  launch(y, 10, 3);
  auto waits = [&] { return device->statistics().synchronizations; };
  auto before = waits();
  constexpr uintptr_t defaultStream = 1;
  check(device->letWait(reinterpret_cast<void *>(defaultStream)));
  EXPECT_EQ(waits(), before + (isAsynchronous() && !hasStreams()));
  EXPECT_EQ(read(y), std::vector<uint64_t>({13, 23}));
  device->release(y);
}

TEST_P(DeviceConformance, TellsWhatItIs) {
  EXPECT_EQ(device->info().name, GetParam());
  EXPECT_GE(device->info().threads, 1);
  EXPECT_EQ(device->info().memoryLimit, 256 * mebi);
}

TEST_P(DeviceConformance, BuffersAreAlignedZeroedAndCounted) {
  for (size_t bytes : {size_t(1), size_t(100), 5 * mebi}) {
    Buffer buffer = allocate(bytes);
    EXPECT_EQ(buffer.bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.address) % 64, 0u);
    EXPECT_EQ(read<uint8_t>(buffer), std::vector<uint8_t>(bytes, 0));
    EXPECT_GE(device->memory().current, bytes);
    check(device->fill(buffer, "x", 1)); // for the next one at this place
    device->release(buffer);
    EXPECT_EQ(device->memory().current, 0u);
  }
  EXPECT_GE(device->memory().peak, 5 * mebi);
  device->resetPeak();
  EXPECT_EQ(device->memory().peak, 0u);
}

TEST_P(DeviceConformance, TooLargeAnAllocationIsAnErrorNotACrash) {
  for (size_t bytes : {257 * mebi, SIZE_MAX, SIZE_MAX - 4000}) {
    size_t before = device->memory().current;
    expectOutOfMemory(bytes);
    EXPECT_EQ(device->memory().current, before);
    expectWorking();
  }
}

TEST_P(DeviceConformance, IsUsableAgainOnceMemoryIsReleased) {
  std::vector<Buffer> buffers;
  for (size_t k = 0; k < 15; ++k)
    buffers.push_back(allocate(16 * mebi));
  expectOutOfMemory(32 * mebi);
  for (Buffer buffer : buffers)
    device->release(buffer);
  buffers = {allocate(200 * mebi)};
  expectWorking();
  device->release(buffers[0]);
}

TEST_P(DeviceConformance, AHugeLimitIsNoPromise) {
  open(SIZE_MAX);
  expectWorking();
}

TEST_P(DeviceConformance, NoBytesAreAnAmountToo) {
  device->resetStatistics();
  Buffer none = allocate(0), other = allocate(0);
  EXPECT_EQ(none.address, nullptr);
  uint64_t zero = 0;
  check(device->upload(none, nullptr));
  check(device->download(nullptr, none));
  check(device->copy(none, other));
  check(device->exchange(none, other));
  check(device->fill(none, &zero, 8));
  EXPECT_EQ(device->statistics(), Statistics());
  launch(none, 1, 1);
  device->release(none);
  device->release(other);
}

//===-- Copies ------------------------------------------------------------===//

TEST_P(DeviceConformance, DataComesBackAndTheSourceMayChangeAtOnce) {
  for (size_t count : {size_t(1), size_t(8191), size_t(8193), 5 * mebi}) {
    std::vector<uint64_t> sent = numbers(count), source = sent;
    Buffer one = allocate(8 * count), other = allocate(8 * count);
    check(device->upload(one, source.data()));
    std::ranges::fill(source, 0);
    check(device->copy(other, one));
    EXPECT_EQ(read(other), sent);
    device->release(one);
    device->release(other);
  }
}

TEST_P(DeviceConformance, ManySmallUploadsKeepTheirOrder) {
  Buffer buffer = allocate(8);
  // Where Vulkan's layers look on, each takes 50 us.
  uint64_t count = GetParam() == "vulkan" ? 20000 : 300000;
  for (uint64_t i = 0; i < count; ++i)
    check(device->upload(buffer, &i));
  EXPECT_EQ(read(buffer)[0], count - 1);
  device->release(buffer);
}

TEST_P(DeviceConformance, ExchangeSwapsContents) {
  Buffer one = uploaded(numbers(10007, 1)), other = uploaded(numbers(10007, 7));
  check(device->exchange(one, other));
  EXPECT_EQ(read(one), numbers(10007, 7));
  EXPECT_EQ(read(other), numbers(10007, 1));
  device->release(one);
  device->release(other);
}

TEST_P(DeviceConformance, ExchangeWorksOrSaysThatMemoryIsShort) {
  open(3 * mebi);
  std::vector<uint64_t> first = numbers(mebi / 8),
                        second = numbers(mebi / 8, 9);
  Buffer one = uploaded(first), other = uploaded(second);
  Buffer rest = allocate(mebi - 4096);
  Result<> done = device->exchange(one, other);
  if (!done)
    EXPECT_EQ(done.error().code, ErrorCode::OutOfMemory);
  EXPECT_EQ(read(one), done ? second : first);
  EXPECT_EQ(read(other), done ? first : second);
  for (Buffer buffer : {one, other, rest})
    device->release(buffer);
}

/// As many as there are.
Rows rowsOf(Buffer buffer, size_t bytes, size_t pitch, size_t offset = 0) {
  size_t count = (buffer.bytes - offset + pitch - bytes) / pitch;
  return {buffer.address + offset, bytes, count, pitch};
}

/// Visits where each byte is: if the rows are packed, and in `of`.
template <class Visit>
void forEachByte(Rows rows, Buffer of, const Visit &visit) {
  auto start = static_cast<size_t>(rows.address - of.address);
  for (size_t row = 0; row < rows.count; ++row)
    for (size_t k = 0; k < rows.bytes; ++k)
      visit(row * rows.bytes + k, start + row * rows.pitch + k);
}

std::vector<uint8_t> someBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count);
  std::ranges::generate(bytes, [&] { return static_cast<uint8_t>(random()); });
  return bytes;
}

TEST_P(DeviceConformance, RowsAreCopiedAndExchangedAtOnce) {
  struct Shape {
    size_t bytes, pitch, offset;
  };
  for (Shape shape :
       {Shape{1, 3, 2}, Shape{2, 6, 4}, Shape{4, 8, 4}, Shape{8, 24, 8},
        Shape{12, 16, 0}, Shape{1000, 7001, 5}}) {
    std::vector<uint8_t> first = someBytes(70011, 1);
    Buffer one = uploaded(first);
    Rows rows = rowsOf(one, shape.bytes, shape.pitch, shape.offset);
    std::vector<uint8_t> second = someBytes(rows.size(), 2), packed = second;
    Buffer other = uploaded(second), third = uploaded(first);
    Rows values(other.address, rows.bytes, rows.count, rows.bytes);
    device->resetStatistics();
    check(device->exchange(rows, values));
    EXPECT_EQ(device->statistics().copies, isAsynchronous() ? 3u : 1u);
    std::vector<uint8_t> exchanged = first;
    forEachByte(rows, one, [&](size_t inPacked, size_t in) {
      std::swap(exchanged[in], packed[inPacked]);
    });
    EXPECT_EQ(read<uint8_t>(one), exchanged);
    check(device->copy(rowsOf(third, shape.bytes, shape.pitch, shape.offset),
                       rows));
    EXPECT_EQ(read<uint8_t>(third), exchanged);
    EXPECT_EQ(read<uint8_t>(other), packed);
    device->resetStatistics();
    check(device->copy(rows, values));
    EXPECT_EQ(device->statistics().copies, 1u);
    EXPECT_EQ(read<uint8_t>(one), first);
    for (Buffer buffer : {one, other, third})
      device->release(buffer);
  }
}

TEST_P(DeviceConformance, ExchangeOfRowsNeedsLittleMemory) {
  open(3 * mebi);
  std::vector<uint64_t> first = numbers(mebi / 8),
                        second = numbers(mebi / 16, 9);
  Buffer one = uploaded(first), other = uploaded(second);
  Buffer rest = allocate(3 * mebi - device->memory().current - (mebi >> 6));
  check(device->exchange({one.address + 8, 8, mebi / 16, 16},
                         {other.address, 8, mebi / 16, 8}));
  for (size_t k = 0; k < second.size(); ++k)
    std::swap(first[2 * k + 1], second[k]);
  EXPECT_EQ(read(one), first);
  EXPECT_EQ(read(other), second);
  for (Buffer buffer : {one, other, rest})
    device->release(buffer);
}

template <class T>
void expectFilled(Device &device, Buffer buffer, size_t count, T value) {
  Buffer part{buffer.address, count * sizeof(T)};
  EXPECT_TRUE(device.fill(part, &value, sizeof(T)).ok());
  std::vector<T> values(count);
  EXPECT_TRUE(device.download(values.data(), part).ok());
  EXPECT_EQ(values, std::vector<T>(count, value));
}

TEST_P(DeviceConformance, FillRepeatsPatternsOfEverySize) {
  constexpr size_t count = 100003;
  Buffer buffer = allocate(8 * count + 8);
  Buffer guard{buffer.address + 8 * count, 8};
  fill(guard, 0x1122334455667788);
  expectFilled<uint8_t>(*device, buffer, count, 0xab);
  expectFilled<uint16_t>(*device, buffer, count, 0xabcd);
  expectFilled<float>(*device, buffer, count, 1.1f);
  for (double value : {0.0, 1.1, -0.0})
    expectFilled<double>(*device, buffer, count, value);
  EXPECT_EQ(read(guard)[0], 0x1122334455667788u);
  device->release(buffer);
}

TEST_P(DeviceConformance, SizesMayExceedFourGibibytes) {
  if (GetParam() != "cuda" && GetParam() != "vulkan")
    GTEST_SKIP() << "takes too much memory of the host";
  constexpr size_t bytes = size_t(5) << 30;
  open(12 * (bytes / 5));
  Result<Buffer> first = device->allocate(bytes);
  if (!first && GetParam() == "vulkan")
    GTEST_SKIP() << first.error().text; // a small one, or the CPU
  Buffer one = *first, other = allocate(bytes);
  fill(one, 3);
  launch(one, 2, 1);
  check(device->copy(other, one));
  for (size_t at : {size_t(0), size_t(4) << 30, bytes - 64})
    EXPECT_EQ(read({other.address + at, 64}), std::vector<uint64_t>(8, 7));
  device->release(one);
  device->release(other);
}

//===-- Launches and order ------------------------------------------------===//

TEST_P(DeviceConformance, LaunchesRunInTheirOrder) {
  Buffer y = uploaded(numbers(10001));
  std::vector<uint64_t> expected = numbers(10001);
  for (uint64_t k = 0; k < 200; ++k) {
    launch(y, 3, k);
    for (uint64_t &value : expected)
      value = 3 * value + k;
  }
  EXPECT_EQ(read(y), expected);
  device->release(y);
}

TEST_P(DeviceConformance, WorkOfAllKindsKeepsItsOrder) {
  constexpr size_t count = 1000;
  std::mt19937 random(7);
  std::vector<Buffer> buffers;
  std::vector<std::vector<uint64_t>> expected;
  for (size_t k = 0; k < 3; ++k) {
    expected.push_back(numbers(count, k));
    buffers.push_back(uploaded(expected.back()));
  }
  for (uint64_t step = 0; step < 2000; ++step) {
    size_t a = random() % 3, b = (a + 1) % 3;
    switch (random() % 6) {
    case 0:
      expected[a] = numbers(count, step);
      check(device->upload(buffers[a], expected[a].data()));
      break;
    case 1:
      expected[a] = expected[b];
      check(device->copy(buffers[a], buffers[b]));
      break;
    case 2:
      std::swap(expected[a], expected[b]);
      check(device->exchange(buffers[a], buffers[b]));
      break;
    case 3:
      std::ranges::fill(expected[a], step);
      fill(buffers[a], step);
      break;
    case 4:
      EXPECT_EQ(read(buffers[a]), expected[a]) << step;
      break;
    default:
      for (uint64_t &value : expected[a])
        value = 5 * value + step;
      launch(buffers[a], 5, step);
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(read(buffers[k]), expected[k]);
    device->release(buffers[k]);
  }
}

TEST_P(DeviceConformance, BuffersMayBeReleasedWhileWorkNeedsThem) {
  constexpr size_t count = mebi / 8;
  Buffer kept = allocate(8 * count);
  for (uint64_t k = 0; k < 50; ++k) {
    Buffer gone = allocate(8 * count);
    fill(gone, k);
    launch(gone, 2, 1);
    check(device->copy(kept, gone));
    device->release(gone);
    Buffer next = allocate(8 * count);
    fill(next, 99);
    device->release(next);
    EXPECT_EQ(read(kept), std::vector<uint64_t>(count, 2 * k + 1));
  }
  device->release(kept);
}

TEST_P(DeviceConformance, SynchronizeWaitsForAllAndTwiceIsFine) {
  check(device->synchronize());
  Buffer y = allocate(8 * mebi);
  for (int i = 0; i < 20; ++i)
    launch(y, 1, 1);
  check(device->synchronize());
  check(device->synchronize());
  if (device->info().isHost) {
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(y.address), 20u);
  }
  EXPECT_EQ(read(y), std::vector<uint64_t>(mebi, 20));
  device->release(y);
}

TEST_P(DeviceConformance, CountsWhatItDoes) {
  Buffer one = allocate(800), other = allocate(800);
  launch(one, 1, 1);
  device->resetStatistics();
  EXPECT_EQ(device->statistics(), Statistics());
  std::vector<uint64_t> values(100);
  check(device->upload(one, values.data()));
  for (int i = 0; i < 2; ++i)
    check(device->copy(other, one));
  for (int i = 0; i < 3; ++i)
    fill(one, 7);
  for (int i = 0; i < 4; ++i)
    launch(one, 1, 1);
  EXPECT_EQ(device->statistics(),
            (Statistics{.launches = 4, .uploads = 1, .copies = 2, .fills = 3}));
  read(one);
  check(device->synchronize());
  Statistics seen = device->statistics();
  EXPECT_EQ(seen.downloads, 1u);
  EXPECT_EQ(seen.synchronizations, isAsynchronous() ? 2u : 0u);
  device->release(one);
  device->release(other);
}

//===-- Graphs and streams ------------------------------------------------===//

TEST_P(DeviceConformance, GraphsRepeatTheirSteps) {
  Buffer y = uploaded(numbers(1000)), other = allocate(64);
  KeptFill seven{other, {std::byte(7)}, 1};
  auto graph = device->capture({kept(y, 3, 1), seven, kept(y, 2, 0)});
  ASSERT_TRUE(graph.ok()) << graph.error().text;
  EXPECT_EQ(read(y), numbers(1000)) << "capturing runs nothing";
  device->resetStatistics();
  std::vector<uint64_t> expected = numbers(1000);
  for (int i = 0; i < 5; ++i) {
    check((*graph)->replay());
    launch(y, 1, 1);
    for (uint64_t &value : expected)
      value = 2 * (3 * value + 1) + 1;
  }
  EXPECT_EQ(device->statistics(), (Statistics{.launches = 15, .fills = 5}));
  EXPECT_EQ(read(y), expected);
  EXPECT_EQ(read<uint8_t>(other), std::vector<uint8_t>(64, 7));
  auto nothing = device->capture({});
  ASSERT_TRUE(nothing.ok());
  check((*nothing)->replay());
  device->release(y);
  device->release(other);
}

TEST_P(DeviceConformance, ItsOwnStreamIsAlwaysThere) {
  check(device->useStream(std::nullopt));
  expectWorking();
  if (hasStreams())
    return;
  Result<> used = device->useStream(device.get());
  ASSERT_FALSE(used.ok());
  EXPECT_EQ(used.error().code, ErrorCode::BadArgument);
}

//===-- Threads -----------------------------------------------------------===//

TEST_P(DeviceConformance, ManyThreadsMayShareIt) {
  auto work = [&](uint64_t number) {
    for (uint64_t i = 0; i < 100; ++i) {
      Buffer y = uploaded(numbers(10000, number)), copy = allocate(80000);
      launch(y, 1, i);
      check(device->copy(copy, y));
      device->release(y);
      EXPECT_EQ(read(copy), numbers(10000, number + i));
      device->release(copy);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t number : {1000, 2000, 3000, 4000, 5000, 6000})
      threads.emplace_back(work, number);
  }
  EXPECT_LE(device->memory().current, 4 * mebi) << "of scratch memory";
}

TEST_P(DeviceConformance, GraphsAreReplayedWhileOthersWork) {
  Buffer y = allocate(80000);
  auto graph = device->capture({kept(y, 1, 1)});
  ASSERT_TRUE(graph.ok()) << graph.error().text;
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        check((*graph)->replay());
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        expectWorking();
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 30; ++i)
        EXPECT_TRUE(device->capture({kept(y, 1, 1)}).ok());
    });
  }
  EXPECT_EQ(read(y), std::vector<uint64_t>(10000, 100));
  device->release(y);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance,
                         testing::ValuesIn(conformance::names()),
                         [](const auto &info) { return info.param; });

} // namespace
