#pragma once
/// What a GPU has to offer: memory, code and launches on one stream. Devices of
/// `gpu::GpuDevice` differ in this only.

#include "base/GpuShape.h"
#include "base/Profile.h"
#include "base/Result.h"
#include "code/DeviceCode.h"
#include "runtime/Buffer.h"
#include "runtime/Counters.h"
#include "runtime/Ranks.h"
#include "runtime/gpu/SideStream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace costate::runtime::gpu {

/// Block memory of a multiprocessor that each block takes for the system.
inline constexpr size_t reservedPerBlock = 1024;

struct Properties {
  std::string name;
  int multiprocessors = 1;
  int residentThreads = 1; ///< of the whole device, at most
  size_t memory = 0;       ///< bytes
  std::string chip;        ///< for the compiler: `sm_90`
  GpuShape shape;          ///< as the compiler sees that
  /// Bytes of the fast memory that threads of a block share: the most that a
  /// launch may ask for, and what the blocks of a multiprocessor share.
  size_t sharedPerBlock = 0, sharedPerMultiprocessor = 0;
  /// What a multiprocessor has of it by another interface; 0: no more.
  size_t sharedOfChip = 0;
  size_t l2Bytes = 0;             ///< cache of the whole device
  int blockThreads = 1024;        ///< of the largest block
  int64_t mostBlocks = INT32_MAX; ///< of a launch
  /// Loops end after some iterations of a thread, so that all should have as
  /// many.
  bool endsLoops = false;
  /// Blocks start and run on while one of them waits for others.
  bool blocksProgress = false;
  /// Work items are sorted by a launch of their own.
  bool sortsApart = false;
  bool isHost = false; ///< the host can dereference addresses
};

/// Code that is loaded; unloaded when it dies, once nothing queued needs it.
class Module {
public:
  virtual ~Module() = default;
};

/// A number of threads, in blocks of `blockThreads`.
struct Grid {
  int64_t blocks = 1;
  int blockThreads = 1;
};

/// Launches, copies and fills that have been kept.
class Captured {
public:
  virtual ~Captured() = default;
};

/// Where work of a thread stands while somebody else captures the stream in
/// use: beside that, and done at once, or as a part of the graph.
enum class Place { Usual, Aside, InGraph };

/// Work is queued on one stream, in the order of the calls. Safe to use from
/// several threads.
class Driver {
public:
  virtual ~Driver() = default;
  virtual const Properties &properties() const = 0;

  /// Contents are undefined. OutOfMemory.
  virtual Result<std::byte *> allocate(size_t bytes) = 0;
  /// When nothing queued so far needs it any more.
  virtual void release(std::byte *address) = 0;
  virtual size_t freeBytes() = 0;
  /// Memory of somebody else, until `disown`, which waits, if `waits`, until
  /// nothing queued needs it. BadArgument if that cannot be.
  virtual Result<> adopt(std::byte *, size_t) { return {}; }
  virtual void disown(std::byte *, bool) {}
  /// Memory of the host that device code reads and writes.
  virtual Result<std::byte *> allocateHost(size_t bytes) = 0;
  /// Where device code finds memory of allocateHost.
  virtual std::byte *onDevice(std::byte *host) { return host; }
  /// Waits until nothing queued can need it any more.
  virtual void releaseHost(std::byte *address) = 0;
  /// Null if there is but one stream.
  virtual Result<std::unique_ptr<SideStream>> openSideStream() {
    return std::unique_ptr<SideStream>();
  }

  /// `from` may change as soon as this returns.
  virtual Result<> upload(std::byte *to, const void *from, size_t bytes) = 0;
  /// Waits for what is queued so far.
  virtual Result<> download(void *to, const std::byte *from, size_t bytes) = 0;
  /// At once, however many rows there are.
  virtual Result<> copy(std::byte *to, const std::byte *from,
                        const CopyShape &shape) = 0;
  /// Repeats a pattern of 1, 2, 4 or 8 bytes.
  virtual Result<> fill(std::byte *to, size_t bytes, const void *pattern,
                        size_t patternBytes) = 0;

  virtual Result<std::shared_ptr<Module>> load(const DeviceCode &code) = 0;
  /// Does what only the first launch of `symbol` takes time or memory for.
  virtual Result<> prepare(Module &module, const std::string &symbol,
                           size_t sharedBytes) = 0;
  /// Every thread calls `symbol` with `words`; those of a block share
  /// `sharedBytes`, at most what the properties say. Functions with sums have
  /// memory for them in any case.
  virtual Result<> launch(Module &module, const std::string &symbol, Grid grid,
                          std::span<const uint64_t> words,
                          size_t sharedBytes = 0) = 0;
  /// Blocks of `symbol` that all run at the same time.
  virtual Result<int64_t> residentBlocks(Module &module,
                                         const std::string &symbol,
                                         int blockThreads,
                                         size_t sharedBytes) = 0;
  virtual Result<> synchronize() = 0;

  /// From here on work goes to `stream`, a handle of the GPU's own API, or back
  /// to our own one for none; after all that was queued before. BadArgument if
  /// there are none.
  virtual Result<> useStream(std::optional<void *> stream) = 0;
  /// The other way round: what others queue on `stream` from here on comes
  /// after all that was queued before. False if there are none.
  virtual Result<bool> letWait(void *) { return false; }

  /// What somebody else captures with the stream in use; 0: nobody does. Then
  /// this thread, and no other at the time, may go elsewhere; what stood Aside
  /// is done when it leaves there.
  virtual uint64_t captureOfOthers() { return 0; }
  virtual Result<> goTo(Place) { return {}; }
  /// It lives at least as long as the graph that is captured, and ends with the
  /// next allocation or call of endDropped.
  virtual Result<> giveToGraph(std::shared_ptr<void>) { return {}; }
  virtual void endDropped() {}

  /// Up to endCapture, launches, copies and fills by this thread are kept
  /// instead of queued; it must do nothing else. One thread at a time.
  virtual Result<> beginCapture() = 0;
  virtual Result<std::shared_ptr<Captured>> endCapture() = 0;
  /// Queues them. `captured` may die at once.
  virtual Result<> replay(Captured &captured) = 0;

  /// When the GPU comes to what is queued next; null if it cannot tell.
  virtual std::shared_ptr<profile::Moment> mark() { return nullptr; }

  /// Whether from here to endSeries launches of this thread may reach the GPU
  /// late, as one: before whatever else this thread asks for, at the latest.
  virtual bool beginSeries() { return false; }
  virtual Result<> endSeries() { return {}; }

  /// Exchanges are under way, which are to run beside what is launched.
  virtual bool isShared() { return false; }

  /// See Device.
  virtual Result<MeetingPlace> meetingPlace(int) { return noRanks(); }
  virtual Result<std::shared_ptr<Ranks>> join(const Meeting &) {
    return noRanks();
  }

  /// What the functions above have done, replays too; zero bytes do not count.
  virtual Counters &counters() = 0;
};

/// Adds what is queued while it lives to profiles, where the GPU tells times.
class TimedByGpu {
public:
  template <class Describe>
  TimedByGpu(Driver &driver, const Describe &describe) : driver(driver) {
    if (!profile::isOn()) [[likely]]
      return;
    begin = driver.mark();
    if (begin) {
      span = describe();
      span->kind = profile::Kind::Device;
    }
  }
  ~TimedByGpu() {
    if (begin) [[unlikely]]
      if (auto end = driver.mark())
        profile::add(*span, driver.properties().name, begin, end);
  }
  TimedByGpu(const TimedByGpu &) = delete;

private:
  Driver &driver;
  std::shared_ptr<profile::Moment> begin;
  std::optional<profile::Span> span;
};

} // namespace costate::runtime::gpu
