#pragma once
/// A piece of a program that brings its own derivative.

#include "costate/array.h"

#include <functional>
#include <string>
#include <vector>

namespace costate {

/// What `primal` does counts as one launch, whose derivatives are the functions
/// of the user. For derivatives that are known better than a compiler can find
/// them, for code of other libraries, and for checkpoints made by hand:
///
/// ```cpp
/// CustomLaunch segment{
///     .name = "segment",
///     .reads = {u},
///     .writes = {u},
///     .primal = [&] { for (int t = 0; t < 100; ++t) step(u, v), step(v, u); },
///     .gradient = [&] {
///       Tape inner;
///       {
///         auto recording = inner.record();
///         for (int t = 0; t < 100; ++t) step(u, v), step(v, u);
///       }
///       inner.backward();
///     }};
/// ```
///
/// Under a `Tape`, `primal` is one entry: nothing inside is an entry of its
/// own. It may use the arrays that are named, and those that it makes itself;
/// Error(BadArgument) for others. In its `backward`, `gradient` runs in the
/// place of the entry. Then arrays in `reads` hold what `primal` found in them,
/// and arrays that are only in `writes` what it left in them;
/// Error(BadArgument) if it reads others, but for gradients and what it has
/// written itself. What it writes to arrays of the recording, other than
/// gradients, is put back when it returns.
///
/// `gradient` keeps the convention of all gradients: it adds to `.grad()` of
/// what `primal` reads, and clears `.grad()` of what it overwrites. A Tape
/// copies the functions; what they refer to must live as long.
struct CustomLaunch {
  std::string name = {};             ///< for messages
  std::vector<AnyArray> reads = {};  ///< all arrays that `primal` reads
  std::vector<AnyArray> writes = {}; ///< all arrays that it writes
  /// Those of them whose values `gradient` does not look at: no copies of them
  /// are kept.
  std::vector<AnyArray> unneeded = {};
  /// Instead of these lists: the arrays are those that `primal` is found to
  /// use, and `gradient` finds in all of them what `primal` left. They are kept
  /// as long as there is memory; Error(CannotReplay) if `gradient` reads one
  /// that was not, or another array that has been written since. Without a
  /// `gradient`, derivatives pass by: what `primal` writes is no part of the
  /// recording.
  bool finds_arrays = false;
  /// `primal` does nothing but to write arrays, and the same each time: a
  /// `Tape` that takes snapshots may run it again. Otherwise it keeps what
  /// `primal` has written.
  bool repeatable = false;
  std::function<void()> primal = {};
  std::function<void()> gradient = {};
  std::function<void()> tangent = {}; ///< primal and tangent in one go
  Loc loc = std::source_location::current();

  /// Runs `primal`.
  void operator()() const;
  /// Runs `gradient`. Error(NotDifferentiable) if there is none.
  void grad() const;
  /// Runs `tangent`. Error(NotDifferentiable) if there is none.
  void jvp() const;
};

} // namespace costate
