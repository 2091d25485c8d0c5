#pragma once
/// The border between compiled code of a GPU and the runtime. No LLVM here.

#include "base/DeviceWords.h"

#include <map>
#include <string>
#include <vector>

namespace costate::runtime {

struct Launch;

extern "C" {
/// What host code calls. Runs a device function: `words` are its own ones,
/// after room for the first ones.
void costate_device_run(Launch *launch, int64_t function, uint64_t *words,
                        int64_t workItems);
/// A slot of the frame; waits for it.
uint64_t costate_device_read(Launch *launch, int64_t slot);
void costate_device_copy(Launch *launch, void *to, const void *from,
                         int64_t bytes);
/// Debug kernels, before a range: its extents, which stay there until its end.
void costate_device_begin_range(Launch *launch, const int64_t *extents,
                                int64_t rank);
}

} // namespace costate::runtime

namespace costate::runtime::gpu {

/// Issue slots of a lane, about: of an iteration, and what a work item and an
/// iteration lose if lanes have work items that are not neighbours in memory.
struct SortCosts {
  int64_t iteration = 0, uncoalescedWorkItem = 0, uncoalescedIteration = 0;
};

/// A range or a part of the serial code.
struct DeviceFunction {
  std::string symbol = {};
  /// What of it decides how large tapes get, and only counts what it would
  /// push; empty: the function itself, or nothing.
  std::string measure = {};
  bool pushes = false; ///< onto a tape that is not in tiles
  bool counts = false; ///< others need its results to count
  bool dryRun = false; ///< what decides its tape is overwritten
  /// Why its tape is not in tiles, in the words of a report.
  std::string obstacle = {};
  /// The word in which the host leaves the bytes of a thread's tape; -1: none.
  int64_t needWord = -1;
  /// The word that says how many bytes of its tape loops may take that are cut
  /// by a budget; -1: there are none.
  int64_t budgetWord = -1;
  bool measuredInPlace = false; ///< right before it runs
  bool serial = false;
  bool afterPivot = false; ///< of the reverse sweep alone
  bool effects = false;    ///< stores to memory that outlives the launch
  bool ordered = false;    ///< adds in an order that is left to chance
  /// Threads wait for others of their warp or block.
  bool collective = false;
  /// Of the memory of a block, for sums that it keeps (base/CommonSums.h).
  size_t blockBytes = 0;
  bool addsUp = false;      ///< its blocks do, in memory of their own
  bool accumulates = false; ///< its threads do, and then update elements
  /// Runs in tiles, with a TapeCall (base/DeviceTape.h) after its other words.
  bool tiles = false;
  /// Running its forward sweep again costs more than saving values.
  bool expensive = false;
  /// Not where a warp has many rows on the chip.
  bool moderatelyExpensive = false;
  /// Of a tape, at most for an iteration of an innermost loop.
  int64_t iterationRows = 0;
  /// The same function with tapes in shared memory, and for drains.
  std::string sharedSymbol = {}, drainSymbol = {};
  /// Sorts the work items by depth first, if a SortCall (base/DeviceSort.h)
  /// after its TapeCall says so.
  bool sorts = false;
  std::string sortSymbol = {}; ///< the same function, to do nothing else
  SortCosts sortCosts = {};
  int64_t sums = 0;    ///< over the grid, in an order that it decides
  bool least = false;  ///< they are no sums but the least pair of i64
  int64_t sumSlot = 0; ///< of the frame: the first one
  bool oneSum = false; ///< of f64; a part that is 0 has not come
  int64_t words = 0;   ///< how many it is called with
  int64_t site = -1;
  int64_t tapeSite = -1;   ///< of what pushes most often
  int64_t blockDim = 0;    ///< work items of a block; 0: what is best
  bool hasBlocks = false;  ///< in which work items depend on each other
  int64_t sharedBytes = 0; ///< of the memory of a block, for their arrays
};

struct DeviceCode {
  std::string image = {}; ///< for a GPU
  /// For the host as a GPU: what symbols stand for.
  std::map<std::string, void *> addresses = {};
  std::vector<DeviceFunction> functions = {};
  int64_t frameSlots = 1;
  bool pushes = false; ///< onto any tape, but for those of tiles
  /// The host knows of all of them how large they get, before anything runs.
  bool knowsNeeds = false;
  /// Sizes of tapes follow from elements of these parameters, and from these
  /// slots of the arguments, or from all.
  std::vector<int64_t> countedFrom = {}, countedSlots = {};
  bool countsFromAll = false;
  bool countsWritten = false; ///< some of them are overwritten
  bool mayFail = false;       ///< threads may report errors
  bool prints = false;        ///< and lines to be printed
};

} // namespace costate::runtime::gpu
