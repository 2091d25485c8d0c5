#include "runtime/cpu/CpuDevice.h"

#include "runtime/Counters.h"
#include "runtime/Graph.h"
#include "runtime/Text.h"
#include "runtime/cpu/Launch.h"
#include "runtime/cpu/Pages.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace costate::runtime {
namespace cpu {

/// From this size on, memory comes as pages, which are zero without a pass
/// over them. The address sanitizer watches only memory from the heap.
#ifdef COSTATE_SANITIZE
static constexpr size_t pagesFrom = SIZE_MAX;
#else
static constexpr size_t pagesFrom = 16u << 10;
#endif
/// Zeros behind what comes as pages. Programs that were written where fields
/// have some memory to spare read there, or add to it.
static constexpr size_t margin = 1u << 20;
/// From this size on, new pages cost less than zeros that are written.
static constexpr size_t clearedByPagesFrom = 1u << 20;
static constexpr size_t alignment = 64;
/// What comes as pages may begin at so many lines of the first one.
static constexpr size_t beginnings = 64;
/// What is mapped besides what is asked for.
static constexpr size_t mappedMore = margin + beginnings * alignment;

/// What an allocation of `bytes` takes; 0 if that overflows.
static size_t rounded(size_t bytes) {
  if (bytes >= pagesFrom)
    return wholePages(bytes);
  return bytes > SIZE_MAX - alignment
             ? 0
             : (bytes + alignment - 1) / alignment * alignment;
}

/// If all arrays began where a page does, equal elements of them would share
/// few lines of the first cache. Begins of neighbours are a golden section
/// apart.
static size_t nextShift() {
  constexpr size_t step = 39;
  static std::atomic<size_t> count = 0;
  size_t line = count.fetch_add(1, std::memory_order_relaxed) * step;
  return line % beginnings * alignment;
}

static std::byte *systemAllocate(size_t bytes) {
  if (bytes >= pagesFrom) {
    std::byte *pages = mapPages(rounded(bytes), mappedMore);
    return pages ? pages + nextShift() : nullptr;
  }
  void *memory = std::aligned_alloc(alignment, rounded(bytes));
  return memory ? static_cast<std::byte *>(std::memset(memory, 0, bytes))
                : nullptr;
}

template <class T> static void fillWith(Buffer buffer, const void *pattern) {
  T value;
  std::memcpy(&value, pattern, sizeof value);
  std::fill_n(reinterpret_cast<T *>(buffer.address),
              buffer.bytes / sizeof value, value);
}

namespace {
class CpuDevice final : public Device {
public:
  CpuDevice(int threads, size_t memoryLimit, size_t tapeBudget)
      : deviceInfo{.name = "cpu",
                   .threads = threads,
                   .memoryLimit = memoryLimit,
                   .tapeBudget = tapeBudget},
        engine(threads, memoryLimit) {}

  const DeviceInfo &info() const override { return deviceInfo; }
  Result<Buffer> allocate(size_t bytes) override;
  void release(Buffer buffer) override;
  Result<Buffer> borrow(size_t bytes) override;
  void giveBack(Buffer buffer) override;
  MemoryUse memory() const override {
    return {engine.budget.current(), engine.budget.peak()};
  }
  void resetPeak() override { engine.budget.resetPeak(); }

  Result<> upload(Buffer to, const void *from) override {
    counters.uploads += to.bytes > 0;
    profile::Timed timed(copyOf("upload", to.bytes));
    return move(to.address, from, to.bytes);
  }
  Result<> download(void *to, Buffer from) override {
    counters.downloads += from.bytes > 0;
    profile::Timed timed(copyOf("download", from.bytes));
    return move(to, from.address, from.bytes);
  }
  Result<> copy(Rows to, Rows from) override {
    Busy busy;
    profile::Timed timed(copyOf("copy", to.size()));
    counters.copies += to.size() > 0;
    copyRows(to.address, from.address, CopyShape(to, from));
    return {};
  }
  Result<> exchange(Rows one, Rows other) override {
    Busy busy;
    profile::Timed timed(copyOf("exchange", one.size()));
    counters.copies += one.size() > 0;
    for (size_t row = 0; row < one.count; ++row) {
      std::byte *begin = one.address + row * one.pitch;
      std::swap_ranges(begin, begin + one.bytes,
                       other.address + row * other.pitch);
    }
    return {};
  }
  Result<> fill(Buffer buffer, const void *pattern,
                size_t patternBytes) override;
  Result<> clear(Buffer buffer) override;

  Result<LaunchReport> launch(const LaunchRequest &request) override {
    Busy busy;
    ++counters.launches;
    counters.primalLaunches += request.isPrimal();
    return cpu::launch(engine, request);
  }
  Result<> synchronize() override { return {}; }

  Result<> useStream(std::optional<void *> stream) override {
    return stream ? noStreams("cpu") : Result<>();
  }
  Result<std::shared_ptr<Graph>> capture(std::vector<Step> steps) override {
    return graphOfSteps(*this, std::move(steps));
  }

  Statistics statistics() const override { return counters.read(); }
  void resetStatistics() override { counters.reset(); }

private:
  static Result<> move(void *to, const void *from, size_t bytes) {
    Busy busy;
    if (bytes)
      std::memcpy(to, from, bytes);
    return {};
  }

  DeviceInfo deviceInfo;
  Engine engine;
  Counters counters;
};
} // namespace

static Failure systemFailure(size_t bytes) {
  return {ErrorCode::OutOfMemory,
          "the system has no " + bytesText(bytes) + " left; release arrays"};
}

Result<Buffer> CpuDevice::allocate(size_t bytes) {
  if (bytes == 0)
    return Buffer{};
  Busy busy;
  size_t taken = rounded(bytes);
  bool allowed = taken != 0 && engine.budget.take(taken);
  if (!allowed && taken != 0) {
    engine.trim();
    allowed = engine.budget.take(taken);
  }
  if (!allowed)
    return noRoomFailure(engine.budget, bytes);
  std::byte *address = systemAllocate(bytes);
  if (!address) {
    engine.trim();
    address = systemAllocate(bytes);
  }
  if (address)
    return Buffer{address, bytes};
  engine.budget.give(taken);
  return systemFailure(bytes);
}

Result<Buffer> CpuDevice::borrow(size_t bytes) {
  if (bytes == 0)
    return Buffer{};
  Busy busy;
  std::byte *block = engine.blocks.take(bytes);
  if (!block) {
    engine.trim();
    block = engine.blocks.take(bytes);
  }
  if (block)
    return Buffer{block, bytes};
  return engine.budget.left() < BlockPool::rounded(bytes)
             ? noRoomFailure(engine.budget, bytes)
             : systemFailure(bytes);
}

void CpuDevice::giveBack(Buffer buffer) {
  Busy busy;
  if (buffer.address)
    engine.blocks.put(buffer.address, buffer.bytes);
}

void CpuDevice::release(Buffer buffer) {
  if (!buffer.address)
    return;
  if (buffer.bytes >= pagesFrom)
    unmapPages(beginOfPage(buffer.address), rounded(buffer.bytes) + mappedMore);
  else
    std::free(buffer.address);
  engine.budget.give(rounded(buffer.bytes));
}

Result<> CpuDevice::fill(Buffer buffer, const void *pattern,
                         size_t patternBytes) {
  Busy busy;
  profile::Timed timed(copyOf("fill", buffer.bytes));
  counters.fills += buffer.bytes > 0;
  if (patternBytes == 1)
    fillWith<uint8_t>(buffer, pattern);
  else if (patternBytes == 2)
    fillWith<uint16_t>(buffer, pattern);
  else if (patternBytes == 4)
    fillWith<uint32_t>(buffer, pattern);
  else
    fillWith<uint64_t>(buffer, pattern);
  return {};
}

Result<> CpuDevice::clear(Buffer buffer) {
  Busy busy;
  profile::Timed timed(copyOf("fill", buffer.bytes));
  counters.fills += buffer.bytes > 0;
  if (buffer.bytes < clearedByPagesFrom)
    std::fill_n(buffer.address, buffer.bytes, std::byte());
  else
    clearPages(buffer.address, buffer.bytes);
  return {};
}

static constexpr int mostThreads = 1024;

static Result<int> chooseThreads(int threads) {
  std::string given = std::to_string(threads);
  if (const char *text = std::getenv("COSTATE_THREADS");
      threads == 0 && text && *text) {
    given = text;
    auto [end, error] = std::from_chars(text, text + given.size(), threads);
    if (error != std::errc() || *end)
      threads = -1;
  } else if (threads == 0) {
    threads = std::min(mostThreads, processorCount());
  }
  if (threads < 1 || threads > mostThreads)
    return Failure{ErrorCode::BadArgument,
                   "`" + given +
                       "` is not a number of threads; choose "
                       "1 to " +
                       std::to_string(mostThreads)};
  return threads;
}

} // namespace cpu

Result<std::shared_ptr<Device>> openCpu(int threads, size_t memoryLimit,
                                        std::optional<size_t> tapeBudget) {
  Result<int> count = cpu::chooseThreads(threads);
  if (!count)
    return count.error();
  if (memoryLimit == 0) {
    Result<size_t> limit = defaultMemoryLimit();
    if (!limit)
      return limit.error();
    memoryLimit = *limit;
  }
  auto budget = runtime::tapeBudget(tapeBudget);
  if (!budget)
    return budget.error();
  return std::shared_ptr<Device>(std::make_shared<cpu::CpuDevice>(
      *count, memoryLimit, budget->value_or(0)));
}

} // namespace costate::runtime
