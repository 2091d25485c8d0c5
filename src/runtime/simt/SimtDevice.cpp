#include "runtime/simt/SimtDevice.h"

#include "base/DeviceWords.h"
#include "base/SimtChip.h"
#include "runtime/Text.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/gpu/GpuDevice.h"
#include "runtime/gpu/HostCapture.h"
#include "runtime/simt/Block.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <thread>

namespace costate::runtime::simt {
namespace {

struct Code final : gpu::Module {
  std::map<std::string, void *> addresses;
  std::map<std::string, gpu::DeviceFunction> functions;
};

/// A number that has little to do with those of its neighbours.
uint64_t mixed(uint64_t seed, uint64_t number) {
  uint64_t mix = (seed + number) * 0x9e3779b97f4a7c15;
  mix = (mix ^ (mix >> 30)) * 0xbf58476d1ce4e5b9;
  mix = (mix ^ (mix >> 27)) * 0x94d049bb133111eb;
  return mix ^ (mix >> 31);
}

/// Memory is not cleared, as on a GPU: it begins with what is a large number in
/// every type, so that what nobody has written makes results wrong.
constexpr std::byte strange{0x7f};
constexpr size_t strangeBytes = size_t(1) << 16;

/// What the threads of a block share.
class BlockMemory {
public:
  explicit BlockMemory(size_t bytes)
      : bytes(bytes),
        start(bytes ? static_cast<std::byte *>(::operator new(bytes, alignment))
                    : nullptr) {
    std::fill_n(start, bytes, strange);
  }
  ~BlockMemory() { ::operator delete(start, bytes, alignment); }
  BlockMemory(const BlockMemory &) = delete;
  std::byte *address() const { return start; }

private:
  static constexpr std::align_val_t alignment{256};
  const size_t bytes;
  std::byte *const start;
};

/// What the blocks of a launch have run into; the first one counts.
class FirstFailure {
public:
  void note(const Result<> &done) {
    std::lock_guard lock(mutex);
    if (first && !done)
      first = done;
  }
  Result<> result() const { return first; }

private:
  std::mutex mutex;
  Result<> first;
};

/// Copies as late as they may be.
class LateCopies final : public gpu::SideStream {
public:
  LateCopies(Counters &count, bool takesAll)
      : count(count), takesAll(takesAll) {}

  size_t smallBytes() const override {
    return takesAll ? 0 : SideStream::smallBytes();
  }

  Result<> enter(size_t place) override {
    auto last = std::find(queue.rbegin(), queue.rend(), place);
    for (auto left = queue.rend() - last; left > 0; --left)
      performFirst();
    isEntered[place] = true;
    return {};
  }
  Result<> leave(size_t place) override {
    isEntered[place] = false;
    return {};
  }
  Result<> save(size_t place, std::byte *to, const std::byte *from,
                size_t bytes) override {
    ++count.downloads;
    return append({place, to, from, bytes});
  }
  Result<> load(size_t place, std::byte *to, const std::byte *from,
                size_t bytes) override {
    ++count.uploads;
    return append({place, to, from, bytes});
  }

private:
  struct Copy {
    size_t place;
    std::byte *to;
    const std::byte *from;
    size_t bytes;
    bool operator==(size_t other) const { return place == other; }
  };
  Result<> append(Copy copy) {
    if (isEntered[copy.place])
      return Failure{ErrorCode::Internal,
                     "a copy beside launches of what they still use"};
    queue.push_back(copy);
    return {};
  }
  void performFirst() {
    const Copy &copy = queue.front();
    std::memcpy(copy.to, copy.from, copy.bytes);
    queue.pop_front();
  }

  Counters &count;
  const bool takesAll;
  std::deque<Copy> queue;
  std::array<bool, places> isEntered = {};
};

/// What is queued has run when a call returns.
class Past final : public profile::Moment {
public:
  int64_t nanoseconds() override { return at; }

private:
  const int64_t at = profile::now();
};

/// The stream is empty whenever a call returns.
class SimtDriver final : public gpu::Driver {
public:
  explicit SimtDriver(const Options &options)
      : info{.name = "simt",
             .multiprocessors = options.threads,
             .residentThreads = 1024,
             .memory = size_t(1) << 34,
             .chip = simtChip(options.lanes),
             .shape = {.lanes = options.lanes},
             .sharedPerBlock = options.sharedPerBlock,
             .sharedPerMultiprocessor = options.sharedPerMultiprocessor,
             .sharedOfChip = options.sharedOfChip,
             .l2Bytes = options.l2Bytes,
             .blockThreads = options.blockThreads,
             .blocksProgress = true,
             .sortsApart = options.sortsApart,
             .isHost = true},
        seed(options.seed), share(options.fewRegisters ? 4 : 1),
        copiesBeside(options.copiesBeside), team(options.threads) {}

  const gpu::Properties &properties() const override { return info; }

  Result<std::byte *> allocate(size_t bytes) override {
    auto *address = static_cast<std::byte *>(
        ::operator new(bytes, std::align_val_t(256), std::nothrow));
    if (!address)
      return Failure{ErrorCode::OutOfMemory, "the system has no memory left"};
    std::fill_n(address, std::min(bytes, strangeBytes), strange);
    return address;
  }
  void release(std::byte *address) override {
    ::operator delete(address, std::align_val_t(256));
  }
  size_t freeBytes() override { return info.memory; }
  Result<std::byte *> allocateHost(size_t bytes) override {
    return allocate(bytes);
  }
  void releaseHost(std::byte *address) override { release(address); }
  Result<std::unique_ptr<gpu::SideStream>> openSideStream() override {
    return std::unique_ptr<gpu::SideStream>(
        std::make_unique<LateCopies>(count, copiesBeside));
  }

  Result<> upload(std::byte *to, const void *from, size_t bytes) override {
    if (bytes == 0)
      return {};
    std::memcpy(to, from, bytes);
    ++count.uploads;
    return {};
  }
  Result<> download(void *to, const std::byte *from, size_t bytes) override {
    if (bytes == 0)
      return {};
    std::memcpy(to, from, bytes);
    ++count.downloads;
    ++count.synchronizations;
    return {};
  }
  Result<> copy(std::byte *to, const std::byte *from,
                const CopyShape &shape) override {
    if (shape.size() == 0)
      return {};
    return capture.perform([=, this] {
      copyRows(to, from, shape);
      ++count.copies;
      return Result<>();
    });
  }
  Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                size_t patternBytes) override {
    if (bytes == 0)
      return {};
    std::vector<std::byte> element(patternBytes);
    std::memcpy(element.data(), pattern, patternBytes);
    return capture.perform([=, this] {
      for (size_t at = 0; at < bytes; at += patternBytes)
        std::memcpy(to + at, element.data(), patternBytes);
      ++count.fills;
      return Result<>();
    });
  }

  Result<std::shared_ptr<gpu::Module>>
  load(const gpu::DeviceCode &code) override {
    auto module = std::make_shared<Code>();
    module->addresses = code.addresses;
    for (const gpu::DeviceFunction &function : code.functions)
      module->functions[function.symbol] = function;
    return std::shared_ptr<gpu::Module>(module);
  }

  Result<> prepare(gpu::Module &, const std::string &, size_t) override {
    return {};
  }
  Result<> launch(gpu::Module &module, const std::string &symbol,
                  gpu::Grid grid, std::span<const uint64_t> words,
                  size_t sharedBytes) override;

  Result<> useStream(std::optional<void *> stream) override {
    return stream ? noStreams("simt") : Result<>();
  }
  Result<> beginCapture() override {
    capture.begin();
    return {};
  }
  Result<std::shared_ptr<gpu::Captured>> endCapture() override {
    return capture.end();
  }
  Result<> replay(gpu::Captured &captured) override {
    return gpu::HostCapture::replay(captured);
  }

  Result<int64_t> residentBlocks(gpu::Module &, const std::string &,
                                 int blockThreads, size_t) override {
    return std::max(info.residentThreads / blockThreads / share, 1);
  }
  Result<> synchronize() override {
    ++count.synchronizations;
    return {};
  }
  std::shared_ptr<profile::Moment> mark() override {
    return std::make_shared<Past>();
  }
  Counters &counters() override { return count; }

private:
  Result<> run(const Code &code, const std::string &symbol, gpu::Grid grid,
               std::span<const uint64_t> words, size_t sharedBytes);

  gpu::Properties info;
  Counters count;
  gpu::HostCapture capture;
  const uint64_t seed;
  const int share; ///< of the threads have registers at a time: one of so many
  const bool copiesBeside;
  std::atomic<uint64_t> schedules = 0;
  cpu::ThreadPool team;
};

std::vector<int64_t> shuffled(int64_t count, uint64_t seed) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::ranges::shuffle(numbers, std::minstd_rand(static_cast<uint32_t>(seed)));
  return numbers;
}

Result<> SimtDriver::launch(gpu::Module &module, const std::string &symbol,
                            gpu::Grid grid, std::span<const uint64_t> words,
                            size_t sharedBytes) {
  auto &code = static_cast<Code &>(module);
  return capture.perform(
      [=, this, &code, kept = std::vector(words.begin(), words.end())] {
        return run(code, symbol, grid, kept, sharedBytes);
      });
}

/// What the compiler says of `symbol`; nothing special of functions of others.
gpu::DeviceFunction functionOf(const Code &code, const std::string &symbol) {
  auto known = code.functions.find(symbol);
  return known == code.functions.end() ? gpu::DeviceFunction() : known->second;
}

Result<> SimtDriver::run(const Code &code, const std::string &symbol,
                         gpu::Grid grid, std::span<const uint64_t> words,
                         size_t sharedBytes) {
  auto entry = reinterpret_cast<DeviceEntry>(code.addresses.at(symbol));
  if (sharedBytes > info.sharedPerBlock)
    return Failure{ErrorCode::Internal,
                   "a block of `" + symbol + "` needs " +
                       std::to_string(sharedBytes) +
                       " bytes of shared memory, and there are " +
                       std::to_string(info.sharedPerBlock)};
  const gpu::DeviceFunction function = functionOf(code, symbol);
  if (function.addsUp)
    sharedBytes = std::max(sharedBytes, sumMemory);
  uint64_t launchSeed = mixed(seed, schedules++);
  FirstFailure failure;
  Interruptible interruptible;
  auto runWith = [&](int64_t block) {
    BlockMemory memory(sharedBytes);
    BlockWork work{entry,
                   words.data(),
                   block,
                   grid.blockThreads,
                   info.shape.lanes,
                   grid.blocks * grid.blockThreads,
                   memory.address(),
                   &interruptible};
    uint64_t blockSeed = mixed(launchSeed, static_cast<uint64_t>(block));
    return function.collective ? runTogether(work, blockSeed)
                               : runSerially(work);
  };
  auto runBlock = [&](int64_t block) {
    try {
      failure.note(runWith(block));
    } catch (const std::bad_alloc &) {
      failure.note(Failure{ErrorCode::OutOfMemory,
                           "the system has no memory left for a block"});
    }
  };
  bool lastWaits = function.oneSum && words[TicketWord] &&
                   words[TicketWord] == words[PartialsWord];
  std::vector<int64_t> order = shuffled(grid.blocks - lastWaits, launchSeed);
  std::atomic<size_t> next = 0;
  team.run(
      static_cast<int>(std::min<size_t>(order.size(), team.size())),
      [&](int) {
        InterruptScope scope(
            interruptible, [](void *) { leaveThread(); }, nullptr);
        for (size_t k; (k = next++) < order.size();)
          runBlock(order[k]);
      },
      &interruptible);
  if (interruptible.isInterrupted())
    return interruptedFailure(symbol);
  if (lastWaits && failure.result()) // who fails leaves no part
    runBlock(grid.blocks - 1);
  ++count.launches;
  Result<> done = failure.result();
  return done ? done
              : Failure{done.error().code,
                        "`" + symbol + "`: " + done.error().text};
}

} // namespace

namespace {

/// A part of COSTATE_SIMT, `NAME=VALUE,...`.
struct Choice {
  std::string_view text, name, value;
};

std::vector<Choice> choices() {
  const char *text = std::getenv("COSTATE_SIMT");
  std::vector<Choice> all;
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    std::string_view name = one.substr(0, one.find('='));
    if (!one.empty())
      all.push_back(
          {one, name, one.substr(std::min(one.size(), name.size() + 1))});
  }
  return all;
}

std::optional<uint64_t> wholeNumber(std::string_view text) {
  uint64_t number;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number)
                                             : std::nullopt;
}

bool isPossible(const Choice &choice) {
  if (choice.name == "sort")
    return choice.value == "apart";
  if (choice.name == "registers")
    return choice.value == "few";
  if (choice.name == "copies")
    return choice.value == "beside";
  std::optional<uint64_t> number = wholeNumber(choice.value);
  if (choice.name == "block")
    return number && *number % 32 == 0 && *number >= 32 && *number <= 1024;
  if (choice.name == "lanes")
    return number && isLanes(*number);
  constexpr uint64_t mostKiB = 1 << 20;
  if (choice.name == "shared" || choice.name == "chip")
    return number && *number <= mostKiB;
  return choice.name == "seed" && number;
}

/// What is said of `name` last; empty if nothing.
std::string_view chosen(std::string_view name) {
  std::string_view value;
  for (const Choice &choice : choices())
    if (choice.name == name)
      value = choice.value;
  return value;
}

/// Refuses what COSTATE_SIMT cannot choose.
Result<> checkChoices() {
  for (const Choice &choice : choices())
    if (!isPossible(choice))
      return Failure{
          ErrorCode::BadArgument,
          "COSTATE_SIMT has `" + std::string(choice.text) +
              "`; it takes `seed=N`, `block=N` (32 to 1024, in steps of 32), "
              "`lanes=32` or `64`, `shared=KiB`, `chip=KiB`, `registers=few`, "
              "`sort=apart` and "
              "`copies=beside`, "
              "with commas between them"};
  return {};
}

} // namespace

/// `otherwise` if nothing is said of it, or no number.
template <class T> static T numberIn(std::string_view name, T otherwise) {
  return static_cast<T>(wholeNumber(chosen(name)).value_or(otherwise));
}

uint64_t chosenSeed() { return numberIn<uint64_t>("seed", 0); }

int chosenLanes() { return numberIn("lanes", 32); }

int chosenBlockThreads() {
  int lanes = chosenLanes();
  return (numberIn("block", 1024) + lanes - 1) / lanes * lanes;
}

size_t chosenShared() {
  return std::max<size_t>(2, numberIn<size_t>("shared", 228)) << 10;
}

size_t chosenChip() { return numberIn<size_t>("chip", 0) << 10; }

bool chosenFewRegisters() { return chosen("registers") == "few"; }

bool chosenSortsApart() { return chosen("sort") == "apart"; }

bool chosenCopiesBeside() { return chosen("copies") == "beside"; }

std::shared_ptr<gpu::Driver> createDriver(const Options &options) {
  return std::make_shared<SimtDriver>(options);
}

} // namespace costate::runtime::simt

namespace costate::runtime {

Result<std::shared_ptr<Device>> openSimt(int threads, size_t memoryLimit,
                                         simt::Options options) {
  if (Result<> checked = simt::checkChoices(); !checked)
    return checked.error();
  auto cpu = openCpu(threads, memoryLimit); // knows what the machine has
  if (!cpu)
    return cpu.error();
  const DeviceInfo &host = (*cpu)->info();
  options.threads = host.threads;
  return gpu::openGpu("simt", simtChip(options.lanes),
                      simt::createDriver(options),
                      {.memoryLimit = host.memoryLimit,
                       .tapeBudget = options.tapeBudget,
                       .validate = options.validate,
                       .sorting = options.sorting});
}

} // namespace costate::runtime
