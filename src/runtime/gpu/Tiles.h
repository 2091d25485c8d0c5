#pragma once
/// Functions that run in tiles, each warp with a tape: where the tapes lie, and
/// what the host learns of them without waiting. Code: DeviceTape.c.

#include "base/DeviceTape.h"
#include "code/KernelCode.h"
#include "runtime/gpu/SharedTapes.h"
#include "runtime/gpu/Sort.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace costate::runtime::gpu {

/// Memory of the host that device code writes to.
class HostMemory {
public:
  static Result<std::unique_ptr<HostMemory>>
  make(std::shared_ptr<Driver> driver, size_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;

  template <class T> T *as() const { return reinterpret_cast<T *>(start); }
  /// For device code.
  template <class T> T *onDevice() const {
    return reinterpret_cast<T *>(driver->onDevice(start));
  }

private:
  HostMemory(std::shared_ptr<Driver> driver, std::byte *start)
      : driver(std::move(driver)), start(start) {}
  std::shared_ptr<Driver> driver;
  std::byte *start;
};

/// What is known of the tapes of one code: on the device, and a copy that
/// launches leave for the host. Of its depths as well.
class TapeNeeds {
public:
  static Result<std::unique_ptr<TapeNeeds>> make(Memory &memory,
                                                 size_t functions);
  explicit TapeNeeds(Memory &memory) : device(memory) {}

  TapeNeed *onDevice(size_t function) const {
    return reinterpret_cast<TapeNeed *>(device.address()) + function;
  }
  TapeNeed *onHost(size_t function) const {
    return host->as<TapeNeed>() + function;
  }
  /// Where device code leaves what `onHost` then has.
  TapeNeed *report(size_t function) const {
    return host->onDevice<TapeNeed>() + function;
  }
  SortHistory &depths(size_t function) { return histories[function]; }

  /// What stays the same from launch to launch, and takes the host a while.
  struct Kept {
    std::optional<uint64_t> name;                  ///< number, in messages
    int64_t residentBlocks = 0, sortingBlocks = 0; ///< 0: not asked yet
  };
  Kept &kept(size_t function) { return keptOf[function]; }

private:
  Scratch device;
  std::unique_ptr<HostMemory> host, reports;
  std::vector<SortHistory> histories;
  std::vector<Kept> keptOf;
};

/// Bytes for the heap.
struct TapeBudget {
  size_t bytes;
  bool isChosen; ///< by the user, who grants it wherever it saves time
};

/// A launch of one function.
struct TiledLaunch {
  Module &module;
  const KernelCode &code;
  const DeviceFunction &function;
  TapeNeeds &needs;
  size_t number; ///< of the function
  uint64_t *words;
  int64_t workItems;
  Scratch &partials; ///< of its sums
  uint64_t ticket;   ///< for them
  TapeBudget budget;

  /// A TapeCall, and after it, if the function sorts, a SortCall.
  uint64_t *callWords() const { return sortWords() - sizeof(TapeCall) / 8; }
  uint64_t *sortWords() const {
    size_t sort = function.sorts ? sizeof(SortCall) / 8 : 0;
    return words + static_cast<size_t>(function.words) - sort;
  }
};

/// The tapes of one stream.
class Tiles {
public:
  Tiles(Memory &memory, Sorting sorting)
      : memory(memory), sorter(memory, sorting), control(memory),
        heap(memory, true), lists(memory) {}

  /// Queues a function and its drain. Waits if nothing is known of its tapes.
  /// Sums are added up by the last drain.
  Result<> run(const TiledLaunch &launch);
  /// What launches have run into; once. For when the stream is empty.
  Result<> failure();
  /// Later launches, and graphs that are replayed, make it again.
  void dropHeap();
  size_t heapBytes() const { return heap.bytes(); }
  /// At least `bytes`, and no more than `most`, if memory allows.
  Result<> growHeap(size_t bytes, size_t most);
  /// No more than `most`; what launches need of it they make again.
  Result<> limitHeap(size_t most);

private:
  SharedTapes sharedTapes(const DeviceFunction &function) const {
    return SharedTapes(memory.driver().properties(), function.blockBytes);
  }
  /// Of a warp, and of a row of its tape.
  int lanes() const { return memory.driver().properties().shape.lanes; }
  size_t rowBytes() const {
    return memory.driver().properties().shape.rowBytes();
  }
  int64_t drainBlocks(uint64_t tiles) const;
  Result<> prepare();
  Result<> prepareLists(TapeCall &call);
  static bool avoidsHeap(TapeBudget budget, const SharedTapes &tapes,
                         const RangeTapes &range);
  Result<TapePlan> plan(const TiledLaunch &launch, const RangeTapes &range);
  Result<int64_t> residentBlocks(const TiledLaunch &launch, int64_t &kept,
                                 const std::string &symbol, int blockThreads,
                                 size_t sharedBytes);
  struct Plans {
    TapePlan tapes;
    SortPlan order{};
    Grid sortGrid{};         ///< of what sorts
    bool sortsApart = false; ///< in a launch in front of the sweep
    bool commits = false;    ///< the sweep is the last launch: all tiles fit
  };
  Result<Grid> sortGrid(const TiledLaunch &launch);
  Result<Plans> planAll(const TiledLaunch &launch, uint64_t tiles,
                        const TapeNeed &known, bool isExact);
  Result<TapePlan> planHeap(const TiledLaunch &launch, uint64_t tiles,
                            const TapeNeed &known);
  Result<> prepareSums(const TiledLaunch &launch, uint64_t tiles,
                       int64_t blocks, int drains);
  uint64_t rowsOf(const TapePlan &plan, const TapeNeed &known) const;
  bool holds(const TapePlan &plan, const TapeNeed &known) const;
  Result<> start(const TiledLaunch &launch, const std::string &symbol,
                 Grid grid, size_t sharedBytes, uint64_t firstPartial,
                 TapeCall &call, const SortCall &sort = {});
  Result<> sortApart(const TiledLaunch &launch, const Plans &plans,
                     TapeCall call);
  Result<> sweep(const TiledLaunch &launch, const Plans &plans, TapeCall &call);
  Result<> drain(const TiledLaunch &launch, TapeCall &call,
                 uint64_t firstPartial);
  /// The first launch of a function: tiles that did not fit run again.
  Result<> repeat(const TiledLaunch &launch, TapeCall &call,
                  uint64_t firstPartial);
  Result<> list(const TapeNeed &need);
  Result<> failureOfOthers();
  Result<> reserveDrain();
  using HeapWords = std::array<uint64_t, 2>;
  HeapWords heapWords() const;
  Result<> storeHeap();
  Result<> clearError();
  Failure failureOf(const TapeFailure &raised) const;
  uint64_t nameOf(const TiledLaunch &launch);

  Memory &memory;
  size_t refused = 0; ///< bytes that the heap could not have
  Sorter sorter;
  Scratch control, heap, lists;
  std::unique_ptr<HostMemory> raised; ///< a TapeFailure
  std::vector<std::string> names;     ///< of functions, for errors
};

} // namespace costate::runtime::gpu
