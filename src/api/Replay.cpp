#include "api/Replay.h"

#include "api/Checked.h"
#include "runtime/ArrayRows.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;

Replay::Replay(TapeImpl &tape, const Reversing &with,
               std::function<void(size_t)> check)
    : tape(tape), checkpoints(*tape.checkpoints), with(with),
      check(std::move(check)) {
  checkpoints.states().beginUse();
  for (const std::shared_ptr<ArrayStorage> &array :
       checkpoints.states().arrays()) {
    auto use = with.lastUse.find(array.get());
    bool isLast =
        use != with.lastUse.end() && use->second->after == array->version;
    before.push_back({array, isLast ? use->second : nullptr, array->version,
                      array->lastWrite});
    with.lastWrites.try_emplace(array->identity, array->lastWrite);
    newest.want(array, Box::whole(array->extents));
  }
}

/// What custom gradients have written and what has been put back counts as no
/// write after the last entry.
Replay::~Replay() {
  forget();
  newest.rollBack();
  for (const Before &one : before) {
    one.array->version = one.version;
    one.array->lastWrite = one.lastWrite;
    if (one.lastUse)
      one.lastUse->after = one.version;
  }
  checkpoints.states().endUse();
}

void Replay::forget() {
  tape.log.endRecording();
  tape.log.endUse();
  tape.log.clear();
}

void Replay::repeat(size_t begin, size_t end) {
  checkpoints.noteRuns(end - begin);
  for (size_t e = checkpoints.begin(tape, begin);
       e < checkpoints.begin(tape, end); ++e)
    tape.entries[e]->repeat();
}

/// Entries after this one do not run to be reversed: nobody looks at what they
/// write.
size_t Replay::lastToRun(size_t first, size_t last) const {
  while (last > first) {
    const TapeEntry &entry = *tape.entries[last - 1];
    if (entry.needsRun())
      break;
    --last;
    if (!entry.wants.empty())
      break;
  }
  return last;
}

/// What the log will copy at most when `entry` runs.
size_t Replay::costOf(const TapeEntry &entry) const {
  size_t cost = entry.partBytes();
  entry.forEachUse(
      [&](const std::shared_ptr<ArrayStorage> &array, const Box *written) {
        if (!written)
          return;
        bool isWanted = std::ranges::any_of(entry.wants, [&](const Want &want) {
          return entry.arguments[want.argument].array == array;
        });
        cost += isWanted ? runtime::bytesOf(*array, {written, 1})
                         : tape.log.costOf(*array, *written);
      });
  return cost;
}

/// False if the log would take more than `room`.
bool Replay::recordStep(size_t first, size_t last, size_t notRun, size_t room) {
  for (size_t e = first; e < last; ++e) {
    TapeEntry &entry = *tape.entries[e];
    const bool runs = e < notRun;
    if (runs && room < SIZE_MAX && tape.log.bytes() + costOf(entry) > room)
      return false;
    tape.log.beginEntry(std::this_thread::get_id(), e);
    entry.record(tape.log, runs);
  }
  return true;
}

/// Runs steps as a recording does; false if that would take too much room.
bool Replay::record(size_t begin, size_t end) {
  const bool isOne = end - begin == 1;
  const size_t room =
      isOne ? SIZE_MAX : checkpoints.room() + checkpoints.tapeOfOne();
  const size_t notRun =
      lastToRun(checkpoints.begin(tape, begin), checkpoints.begin(tape, end));
  size_t before = 0, largest = 0;
  for (size_t step = begin; step < end; ++step) {
    if (!recordStep(checkpoints.begin(tape, step),
                    checkpoints.begin(tape, step + 1), notRun, room)) {
      checkpoints.limitSteps(std::max<size_t>(step - begin, 1));
      return false;
    }
    checkpoints.notePeak(newest.bytes() + tape.log.peakBytes());
    largest = std::max(largest, tape.log.bytes() - before);
    before = tape.log.bytes();
  }
  checkpoints.noteTape(largest, isOne);
  checkpoints.noteRuns(end - begin - 1);
  return true;
}

bool Replay::reverse(size_t begin, size_t end) {
  const size_t first = checkpoints.begin(tape, begin);
  const size_t last = checkpoints.begin(tape, end);
  if (!record(begin, end)) {
    for (size_t e = first; e < last; ++e)
      tape.entries[e]->forget();
    forget();
    return false;
  }
  reverseEntries(first, last);
  return true;
}

/// They have been recorded by `log`.
void Replay::reverseEntries(size_t first, size_t last, const Left &tell) {
  tape.log.endRecording();
  for (size_t e = first; e < last; ++e)
    check(e);
  tape.log.beginUse(/*observed=*/tape.isForeign);
  for (size_t e = last; e-- > first;) {
    tape.entries[e]->reverse(with);
    tape.entries[e]->forget();
    if (tell)
      tell(e);
  }
  forget();
}

/// Those in front of the first snapshot: nothing runs again.
void Replay::reverseIntact(const Left &tell) {
  const size_t last = checkpoints.intactEntries(tape);
  if (last == 0)
    return;
  checkpoints.restoreIntact();
  checkpoints.notePeak(newest.bytes());
  recordStep(0, last, /*notRun=*/0);
  reverseEntries(0, last, tell);
}

void Replay::run(const Progress &progress) {
  const size_t intact = checkpoints.intactSteps();
  const size_t all = intact + checkpoints.steps();
  checkpoints.beginRuns();
  checkpoints.dropToBudget();
  for (size_t end = checkpoints.steps(); end > 0;) {
    checkpoints.dropFrom(end);
    checkpoints.keepToBudget();
    runtime::Schedule::Pass pass = checkpoints.next(end);
    checkpoints.restore();
    repeat(checkpoints.lastState(), pass.to);
    checkpoints.notePeak(newest.bytes());
    if (!pass.reverses)
      checkpoints.keepState(pass.to);
    else if (reverse(pass.to, end))
      end = pass.to;
    if (pass.reverses && progress)
      progress(all - intact - end, all);
  }
  if (!progress)
    return reverseIntact({});
  const size_t entries = checkpoints.intactEntries(tape);
  reverseIntact([&](size_t left) { // steps have about as many entries each
    progress(all - (intact * left + entries - 1) / entries, all);
  });
  if (intact && !entries)
    progress(all, all);
}
