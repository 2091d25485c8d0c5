#pragma once
/// How many segments a loop gets within some bytes.

#include "autodiff/cut/Number.h"

namespace costate::autodiff {

/// On how many levels a loop is divided that stands in no other one of those,
/// and one that does. The body of a `for` with n levels stands in its gradient
/// n + 4 times, of a `while` n + 2 times.
inline constexpr unsigned mostLevels = 3, levelsInLoops = 1;

/// What is known of a loop before it runs.
struct LoopSizes {
  Number iterations;
  Number state;                 ///< bytes
  Number own;                   ///< that an iteration saves without loops in it
  std::optional<Number> record; ///< with them, if that is known

  /// To compute with where `b` stands.
  LoopSizes at(Builder &b) const {
    return {iterations.at(b), state.at(b), own.at(b),
            record ? std::optional(record->at(b)) : std::nullopt};
  }
};

/// How some iterations are divided; the last segment may be shorter.
struct Level {
  Number count, length;
};

/// Of a whole loop. `levels[0]` divides its first iterations into segments of
/// one length, the last `rest` are kept. Each other level divides a segment of
/// the one before it, into one unless its iterations do not fit.
struct Schedule {
  llvm::SmallVector<Level> levels;
  Number rest;
  Number share; ///< bytes for the loops in an iteration
};

/// With so many levels, within `budget`.
Schedule scheduleOf(const LoopSizes &sizes, Number budget, unsigned levels);

/// How a loop is divided as it runs. A segment begins with `begin` bytes; its
/// own segments, on `levels` levels, with `sizes.state`.
struct OnlineSchedule {
  LoopSizes sizes; ///< of all iterations: not known
  Number begin, budget;
  unsigned levels;
  /// Whether a tape is as large as the forward sweep asks for: then segments
  /// grow beyond the budget rather than become many.
  bool measured;

  /// How many bytes segment `number` may have.
  Number bytesOf(Number number) const;
  /// How many iterations.
  Number lengthOf(Number number) const;
  /// Into what its `iterations` are divided when it is reversed.
  Schedule divisionOf(Number number, Number iterations) const;

private:
  Number roomBehind(Number states) const;
  Number recordOfIteration() const;
};

} // namespace costate::autodiff
