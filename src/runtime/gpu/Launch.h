#pragma once
/// A running launch on a GPU.

#include "code/DeviceCode.h"
#include "runtime/Device.h"
#include "runtime/gpu/Tiles.h"

#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace costate::runtime::gpu {

/// What loops that are cut by a budget may take of their tape, in bytes.
struct BudgetShares {
  uint64_t thread = 0, serial = 0;
};

/// What tapes need, in bytes.
struct TapeSizes {
  uint64_t thread = 0, serial = 0;
  size_t threads = 0;
  int64_t threadSite = -1, serialSite = -1;
  BudgetShares shares = {}; ///< with which they need that
};

/// What launches have needed, by what it followed from; of the last ones.
class CountedSizes {
public:
  const TapeSizes *find(std::span<const uint64_t> from) const;
  void keep(std::span<const uint64_t> from, const TapeSizes &sizes);

private:
  std::deque<std::pair<std::vector<uint64_t>, TapeSizes>> last;
};

struct LoadedCode {
  std::weak_ptr<const DeviceCode> code; ///< gone: unloaded with the next load
  std::shared_ptr<Module> module;
  std::shared_ptr<TapeNeeds> needs;
  /// Of each function that adds up, once it has run: blocks that run at a time.
  std::vector<Grid> fullGrids;
  CountedSizes counted;
};

/// What all launches of one device share; `mutex` is held during a launch.
struct Engine {
  Engine(std::shared_ptr<Driver> driver, size_t limit, TapeBudget heapBudget,
         Sorting sorting)
      : memory(std::move(driver), limit), frame(memory), tapes(memory),
        serialTape(memory), partials(memory), cells(memory), messages(memory),
        tiles(memory, sorting), heapBudget(heapBudget) {}

  Driver &driver() const { return memory.driver(); }

  std::recursive_mutex mutex;
  Memory memory;
  Scratch frame, tapes, serialTape, partials, cells, messages;
  Tiles tiles;
  const TapeBudget heapBudget; ///< of launches that have no budget
  /// While they are captured: the least of all launches.
  size_t graphBudget = SIZE_MAX;
  std::map<const DeviceCode *, LoadedCode> loaded;
};

/// Runs `request`; waits for it only where values or errors decide.
Result<LaunchReport> launch(Engine &engine, const LaunchRequest &request);

} // namespace costate::runtime::gpu
