#include "autodiff/cut/Levels.h"

#include "sizing/Costs.h"

namespace costate::autodiff {
namespace {

/// The least k with k (room - k state) >= bytes; if there is none, the k for
/// which that is largest.
Number leastCount(Number bytes, Number room, Number state) {
  Number square = room * room - state * bytes * 4;
  Number least = bytes * 2 / (room + square.atLeast(0).root());
  Number most = room / (state * 2);
  return least.atMost(most).roundedUp().atLeast(1);
}

/// The bytes of records that so many levels reverse in `room`: room / (n + 1)
/// each for the states of a level and for records go farthest.
Number reachOf(Number room, Number state, unsigned levels) {
  if (levels == 1)
    return room * room * 0.25 / state;
  Number part = room * (1.0 / (levels + 1)), reach = part;
  Number states = (part / state).roundedDown().atLeast(1);
  for (unsigned level = 0; level < levels; ++level)
    reach = reach * states;
  return reach;
}

/// Into how many segments records of `bytes` are divided, with as few of these
/// levels as that takes.
Number countOf(Number bytes, Number room, Number state, unsigned levels) {
  Number count = leastCount(bytes, room, state);
  for (unsigned level = 2; level <= levels; ++level) {
    Number part = room * (1.0 / (level + 1));
    Number wide = (part / state).roundedDown().atLeast(1);
    count = bytes.ifAbove(reachOf(room, state, level - 1), wide, count);
  }
  return count;
}

Level levelOf(Number iterations, Number count) {
  Number length = (iterations / count).roundedUp().atLeast(1);
  return {(iterations / length).roundedUp(), length};
}

/// Divides the segments of the last level further. Of the states of a level all
/// are there but for the one whose segment is being reversed.
void divide(llvm::SmallVectorImpl<Level> &levels, Number &room, Number record,
            Number state, unsigned more) {
  for (; more; --more) {
    Number length = levels.back().length, bytes = length * record;
    Number usable = (room - record).atLeast(1); // lengths are whole
    Number count = countOf(bytes, usable, state, more);
    count = bytes.ifAbove(room, count, count.constant(1));
    levels.push_back(levelOf(length, count));
    room = room - (levels.back().count - 1) * state;
  }
}

/// `kept`: bytes for the rest, `room` for a segment.
Number shareOf(const Schedule &schedule, Number kept, Number room,
               const LoopSizes &sizes) {
  Number ofRest = kept / schedule.rest.atLeast(1);
  Number ofSegment = room / schedule.levels.back().length;
  return (ofRest.atMost(ofSegment) - sizes.own).atLeast(0);
}

/// The last iterations, as many as fit behind the states, are kept; a segment
/// has as much room as they have when it runs again. Of k segments all fits if
/// (k + 1) (budget - k state) >= iterations record.
Schedule byRecords(const LoopSizes &sizes, Number record, Number budget,
                   unsigned levels) {
  Number state = sizes.state, all = sizes.iterations;
  Number excess = all * record - budget;
  Number count = countOf(excess, (budget - state).atLeast(1), state, levels);
  Number kept = budget - count * state;
  Number rest = (kept / record).roundedDown().atLeast(1).atMost(all);
  rest = excess.ifAbove(excess.constant(0), rest, all);
  Schedule schedule{{levelOf(all - rest, count)}, rest, rest};
  kept = budget - schedule.levels.front().count * state;
  Number room = kept;
  divide(schedule.levels, room, record, state, levels - 1);
  schedule.share = shareOf(schedule, kept, room, sizes);
  return schedule;
}

/// Half of the budget for states, the other half for what is unknown. Where an
/// iteration would have little of that, a quarter for states of a second level.
Schedule byStates(const LoopSizes &sizes, Number budget, unsigned levels) {
  Number state = sizes.state, all = sizes.iterations;
  Number half = (budget * 0.5).atLeast(1);
  Number length = (all * state / half).roundedUp().atLeast(1);
  Number segments = ((all / length).roundedDown() - 1).atLeast(0);
  Number rest = all - segments * length;
  Number shorter = length;
  if (levels > 1) {
    Number many = all.constant(16), second = (half * 0.5).atLeast(1);
    rest = length.ifAbove(many, all.constant(0), rest);
    shorter = (length * state / second).roundedUp().atLeast(1);
    shorter = length.ifAbove(many, shorter, length);
  }
  Number count = ((all - rest) / length).roundedUp();
  Schedule schedule{{{count, length}}, rest, rest};
  Number kept = budget - count * state, room = kept;
  if (levels > 1) {
    Number further = (length / shorter).roundedUp();
    schedule.levels.push_back({further, shorter});
    room = room - (further - 1) * state;
  }
  schedule.share = shareOf(schedule, kept, room, sizes);
  return schedule;
}

} // namespace

Schedule scheduleOf(const LoopSizes &sizes, Number budget, unsigned levels) {
  return sizes.record ? byRecords(sizes, *sizes.record, budget, levels)
                      : byStates(sizes, budget, levels);
}

//===-- As it runs --------------------------------------------------------===//

/// If that is not known, few iterations of a segment have the room.
Number OnlineSchedule::recordOfIteration() const {
  constexpr double few = 64;
  Number part = budget * (1 / few);
  return sizes.record ? *sizes.record : (sizes.own * 2).atLeast(part);
}

Number OnlineSchedule::roomBehind(Number states) const {
  Number least = measured ? states : states.constant(0);
  return (budget - states - begin).atLeast(least);
}

/// As much as the states before it, and at least what a cache holds.
Number OnlineSchedule::bytesOf(Number number) const {
  Number states = number * begin;
  return states.atLeast(sizing::cachedBytes).atMost(roomBehind(states));
}

/// Once states take a third of the budget, a segment is as long as all levels
/// allow.
Number OnlineSchedule::lengthOf(Number number) const {
  Number states = number * begin;
  Number most = reachOf(roomBehind(states), sizes.state, levels);
  Number bytes = states.ifAbove(budget * (1.0 / 3), most, bytesOf(number));
  return (bytes / recordOfIteration().atLeast(1)).roundedDown().atLeast(1);
}

Schedule OnlineSchedule::divisionOf(Number number, Number iterations) const {
  Number room = roomBehind(number * begin), none = room.constant(0);
  Level whole{none, iterations.atLeast(1)};
  Schedule schedule{{whole}, none, none};
  divide(schedule.levels, room, recordOfIteration().atLeast(1), sizes.state,
         levels);
  schedule.share = shareOf(schedule, room, room, sizes);
  schedule.levels.erase(schedule.levels.begin());
  return schedule;
}

} // namespace costate::autodiff
