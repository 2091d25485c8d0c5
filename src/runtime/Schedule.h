#pragma once
/// Which states of a sequence of steps are kept, so that the steps can be
/// reversed: from the last to the first, each from the state before it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace costate::runtime {

/// Of a sequence of known length it keeps the states that make steps run again
/// as rarely as possible (Griewank and Walther, "Algorithm 799: revolve",
/// 2000). Of unknown length, those from which it is almost so wherever the
/// sequence ends: gaps are those of the known schedule in which no step runs
/// more than `repeats` times; where no state is left for another gap,
/// neighbours that together do not exceed theirs become one, and if there are
/// none, `repeats` grows (as Wang, Moin and Iaccarino, "Minimal repetition
/// dynamic checkpointing", 2009).
class Schedule {
public:
  /// The most steps that can be reversed with so many states if none runs more
  /// than `repeats` times before it is reversed: binomial(slots + repeats,
  /// slots).
  static uint64_t reach(uint64_t slots, uint64_t repeats);
  /// The least number of steps that run so that `steps` are reversed: one that
  /// is about to be reversed does not count.
  static uint64_t optimum(uint64_t steps, uint64_t slots);

  /// Keeps at most so many states, at least one: the first.
  explicit Schedule(size_t slots) { limit(slots); }
  void limit(size_t slots);
  size_t limit() const { return slots; }
  /// The sequence is going to have so many steps. If it has more, the rest is
  /// of unknown length.
  void expect(uint64_t steps) { expected = steps; }
  uint64_t expectedSteps() const { return expected; }

  /// The steps before which the state is kept, in order.
  const std::vector<uint64_t> &kept() const { return steps; }

  /// What to do before `step` runs for the first time. To be repeated until
  /// nothing is to be dropped.
  struct Choice {
    std::optional<size_t> drop; ///< a position in kept()
    bool keeps = false;         ///< the state before `step`
  };
  Choice before(uint64_t step);

  /// What to do next if steps from `end` on are reversed: goes back to the
  /// state that was kept last, runs the steps up to `to`, and then keeps the
  /// state there, or reverses all from `to`. `atOnce` steps can be reversed in
  /// one go.
  struct Pass {
    uint64_t to;
    bool reverses;
  };
  Pass next(uint64_t end, uint64_t atOnce) const;

  void keep(uint64_t step) { steps.push_back(step); }
  void drop(size_t position);
  /// How many steps run if those before `end` are reversed, beginning with the
  /// state after all of them.
  uint64_t cost(uint64_t end) const;

private:
  bool isDue(uint64_t step) const;
  std::optional<size_t> dispensable(uint64_t step) const;

  size_t slots = 1;
  uint64_t expected = 0; ///< 0: not known
  uint64_t repeats = 1;
  std::vector<uint64_t> steps;
};

} // namespace costate::runtime
