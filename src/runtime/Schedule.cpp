#include "runtime/Schedule.h"

#include <algorithm>
#include <cassert>

namespace costate::runtime {

/// More than any number of steps.
static constexpr uint64_t enough = uint64_t(1) << 62;

uint64_t Schedule::reach(uint64_t slots, uint64_t repeats) {
  unsigned __int128 product = 1;
  const uint64_t least = std::min(slots, repeats);
  for (uint64_t k = 1; k <= least; ++k) {
    product = product * (slots + repeats - least + k) / k;
    if (product > enough)
      return enough;
  }
  return static_cast<uint64_t>(product);
}

/// The same, of one slot or one repetition less than that.
static uint64_t reachBelow(uint64_t slots, uint64_t repeats, uint64_t less) {
  return repeats < less ? 0 : Schedule::reach(slots, repeats - less);
}

/// How often a step runs at most.
static uint64_t repeatsOf(uint64_t steps, uint64_t slots) {
  uint64_t low = 0, high = 1;
  while (Schedule::reach(slots, high) < steps)
    low = high, high *= 2;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (Schedule::reach(slots, middle) < steps)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

uint64_t Schedule::optimum(uint64_t steps, uint64_t slots) {
  if (steps < 2)
    return 0;
  const uint64_t repeats = repeatsOf(steps, slots);
  return repeats * steps - reachBelow(slots + 1, repeats, 1);
}

/// After how many of `steps` steps the next state is kept: of all numbers that
/// are best the largest, for the least copies.
static uint64_t firstGap(uint64_t steps, uint64_t slots) {
  const uint64_t repeats = repeatsOf(steps, slots);
  const uint64_t rest = reachBelow(slots - 1, repeats, 1);
  uint64_t most =
      std::min(reachBelow(slots, repeats, 1), steps > rest ? steps - rest : 1);
  return std::clamp<uint64_t>(most, 1, steps - 1);
}

void Schedule::limit(size_t most) { slots = std::max<size_t>(most, 1); }

void Schedule::drop(size_t position) {
  assert(position > 0 || steps.size() == 1);
  steps.erase(steps.begin() + static_cast<long>(position));
}

/// Whether the last gap is as long as it should be.
bool Schedule::isDue(uint64_t step) const {
  const uint64_t gap = step - steps.back(), free = slots - steps.size();
  if (step < expected)
    return gap >= firstGap(expected - steps.back(), free + 1);
  return gap >= reachBelow(free + 1, repeats, 1);
}

/// The last state without which the gap is not too long.
std::optional<size_t> Schedule::dispensable(uint64_t step) const {
  for (size_t k = steps.size() - 1; k > 0; --k) {
    uint64_t end = k + 1 < steps.size() ? steps[k + 1] : step;
    uint64_t free = slots + 1 > k ? slots + 1 - k : 0;
    if (free && end - steps[k - 1] <= reachBelow(free, repeats, 1))
      return k;
  }
  return std::nullopt;
}

Schedule::Choice Schedule::before(uint64_t step) {
  if (steps.empty())
    return {std::nullopt, true};
  if (steps.back() >= step && steps.size() <= slots)
    return {};
  if (steps.size() < slots)
    return {std::nullopt, isDue(step)};
  const bool isFull = steps.size() == slots;
  if (isFull && (slots == 1 || step < expected))
    return {};
  for (;; ++repeats) {
    if (isFull && step - steps.back() < repeats)
      return {};
    if (std::optional<size_t> one = dispensable(step))
      return {.drop = one};
  }
}

Schedule::Pass Schedule::next(uint64_t end, uint64_t atOnce) const {
  assert(!steps.empty() && steps.back() < end);
  const uint64_t from = steps.back(), length = end - from;
  const uint64_t free = slots > steps.size() ? slots - steps.size() : 0;
  if (length <= atOnce)
    return {from, true};
  if (free == 0)
    return {end - atOnce, true};
  return {from + firstGap(length, free + 1), false};
}

uint64_t Schedule::cost(uint64_t end) const {
  uint64_t sum = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    bool isLast = k + 1 == steps.size();
    uint64_t length = (isLast ? end : steps[k + 1]) - steps[k];
    sum += optimum(length, std::max<uint64_t>(slots - std::min(k, slots), 1));
  }
  return sum;
}

} // namespace costate::runtime
