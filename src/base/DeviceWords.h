#pragma once
/// What compiled code of a GPU is called with, and what it reports.

#include <cstddef>
#include <cstdint>

namespace costate {

/// The words that every device function starts with; those of the function
/// follow. Addresses are of the device.
enum DeviceWord : size_t {
  WorkItemsWord, ///< of the range; 1 for serial code
  TapeBaseWord,  ///< ranges: tapes of all warps
  TapeBytesWord, ///< of one thread; a warp has that of each lane, interleaved
  PartialsWord,  ///< f64, for each sum one of each block
  PartialCountWord, ///< blocks of all launches that add up together
  FirstPartialWord, ///< where the blocks of this launch start
  /// A u64 that blocks count in, 0 between launches, unless one has failed.
  /// Null: a later launch finishes. The partials themselves: the block with the
  /// highest number waits for them; they are 0 between launches.
  TicketWord,
  FrameWord,     ///< 8-byte slots; slot 0: top of the tape of the serial code
  ErrorsWord,    ///< a DeviceErrorCell
  NeedWord,      ///< measuring: u64, the largest tape of a thread so far
  PerThreadWord, ///< work items that each thread runs,
  RestWord,      ///< and how many threads run one more
  firstOwnWord,
};

/// Threads of the largest block of a function with sums, but without tiles.
inline constexpr int sumBlockThreads = 512;

/// Bytes of the memory of a block that functions with sums use at their end.
inline constexpr size_t sumMemory = 65 * 8;

/// A line that a thread prints.
struct DeviceMessage {
  int64_t site, text, count, workItem;
  int64_t words[8];
};

/// What threads report; of one function, the smallest work item wins.
struct DeviceErrorCell {
  enum Kind : uint32_t {
    None,
    IndexError, ///< parameter, dim, index, extent
    StepZero,
    NotFinite,        ///< text, count, up to four f64
    ElementNotFinite, ///< text, parameter, element, f64
    SumNotFinite,     ///< text, parameter, element, two f64
    AssertFailed,     ///< text, count, up to four words
    Refused,          ///< text, count, up to four sites
  };
  uint32_t lock;
  uint32_t kind;
  int64_t workItem;
  int64_t site;
  int64_t words[6];
  // What they print: so many lines, of which as many are kept as there is room
  // for.
  uint64_t printed, room;
  DeviceMessage *messages;
};

} // namespace costate
