#include "api/Checkpoints.h"

#include "api/AccessSet.h"
#include "api/Checked.h"
#include "api/TapeImpl.h"
#include "runtime/ArrayRows.h"
#include "runtime/Text.h"

#include <algorithm>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using runtime::ArrayStorage;
using runtime::Box;
using runtime::Schedule;

/// As many as one can count.
static constexpr size_t unlimited = size_t(1) << 40;

Checkpoints::Checkpoints(const TapeOptions &options)
    : slots(options.snapshots ? options.snapshots : unlimited),
      budget(options.budget), schedule(slots),
      snapshots({options.on_host, options.folder}),
      outside{{options.on_host, options.folder}} {}

void Checkpoints::mark() { isMarked = isNew = true; }

void Checkpoints::expect(size_t count) {
  expected = std::max(expected, intact.steps + steps() + count);
  if (intact.isOver)
    schedule.expect(expected - intact.steps);
}

size_t Checkpoints::intactEntries(const TapeImpl &tape) const {
  return intact.isOver ? intact.entries : tape.entries.size();
}

size_t Checkpoints::begin(const TapeImpl &tape, size_t step) const {
  return step < begins.size() ? begins[step] : tape.entries.size();
}

//===-- Recording ---------------------------------------------------------===//

/// Whether nothing need be kept for it either, as nobody overwrites what
/// gradients of other entries look at.
bool Checkpoints::staysIntact(const TapeEntry &entry) const {
  if (intact.isOver || snapshots.count() > 0 || !entry.leavesAll())
    return false;
  bool stays = true;
  entry.forEachUse(
      [&](const std::shared_ptr<ArrayStorage> &array, const Box *written) {
        stays &= array->strangers == 0 &&
                 !(written && snapshots.wouldBegin(*array, *written));
      });
  return stays;
}

/// With the rest of a step, unless a step begins.
void Checkpoints::endIntact(size_t entry, bool isStep) {
  intact.isOver = true;
  intact.entries = entry;
  if (!isStep)
    --intact.steps;
  if (expected > intact.steps)
    schedule.expect(expected - intact.steps);
}

/// A step begins, perhaps with a snapshot.
void Checkpoints::open(size_t entry) {
  isNew = false;
  tape = {};
  limitSlots();
  begins.push_back(entry);
  for (;;) {
    Schedule::Choice choice = schedule.before(steps() - 1);
    if (choice.drop)
      dropState(*choice.drop);
    if (choice.keeps)
      keepState(steps() - 1);
    if (!choice.drop && !choice.keeps)
      return;
  }
}

/// Whether entries find it, whenever they run, as the entry leaves it that is
/// the first to use it: only entries that are recorded after that write it.
bool Checkpoints::canBegin(const ArrayStorage &array) const {
  const bool isShared = array.owner || array.isOpen || array.strangers > 0;
  return !isShared && !array.isCompanion &&
         !versions.contains(array.identity) &&
         std::ranges::none_of(made, [&](const auto &range) {
           return array.identity > range.first &&
                  array.identity <= range.second;
         });
}

bool Checkpoints::beginsWith(const HostWriteEntry &entry) const {
  return entry.arguments[0].replaced && canBegin(*entry.arguments[0].array);
}

/// Arrays that `entry` uses become a part of the snapshots; what somebody else
/// has written to them since they were used last is kept.
void Checkpoints::meet(TapeEntry &entry) {
  size_t cost = 0;
  entry.forEachUse([&](const std::shared_ptr<ArrayStorage> &array,
                       const Box *written) {
    snapshots.add(array);
    if (budget && written)
      cost += snapshots.costOf(*array, *written);
    auto [known, isNew] = versions.try_emplace(array->identity, array->version);
    if (isNew || known->second == array->version)
      return;
    known->second = array->version;
    if (!intact.isOver)
      return;
    entry.found.keep(array, Box::whole(array->extents), outside);
  });
  makeRoom(cost);
}

void Checkpoints::follow(TapeEntry &entry) {
  if (!entry.obstacle().empty())
    entry.keepResults(
        outside, [&](const ArrayStorage &array) { return !canBegin(array); });
  entry.forEachUse(
      [&](const std::shared_ptr<ArrayStorage> &array, const Box *) {
        snapshots.add(array);
        versions[array->identity] = array->version;
      });
  keptBytes += entry.found.bytes() + entry.results.bytes();
  if (auto *write = dynamic_cast<HostWriteEntry *>(&entry))
    keptBytes += write->bytes();
}

/// What the log will copy at most when steps are run to be reversed: of arrays
/// that a gradient looks at, what is written after that; by the last entry only
/// if it has to run.
void Checkpoints::countTape(TapeEntry &entry) {
  for (const Want &want : entry.wants)
    for (std::set<const ArrayStorage *> *arrays : {&tape.wanted, &wanted})
      arrays->insert(entry.arguments[want.argument].array.get());
  size_t one = entry.partBytes(), several = one;
  entry.forEachUse(
      [&](const std::shared_ptr<ArrayStorage> &array, const Box *box) {
        size_t bytes = box ? runtime::bytesOf(*array, {box, 1}) : 0;
        one += tape.wanted.contains(array.get()) ? bytes : 0;
        several += wanted.contains(array.get()) ? bytes : 0;
      });
  tape.bytes += std::exchange(tape.last, one);
  tape.several += several;
  if (entry.needsRun())
    tape.bytes += std::exchange(tape.last, 0);
  else
    most.notRun = std::max(most.notRun, several);
  most.one = std::max(most.one, tape.bytes);
  most.several = std::max(most.several, tape.several);
}

void Checkpoints::followIntact(const TapeEntry &entry, bool isStep) {
  for (const Want &want : entry.wants)
    snapshots.guard(*entry.arguments[want.argument].array, want.elements);
  intact.steps += isStep;
  isNew = false;
}

void Checkpoints::record(TapeImpl &recording, std::unique_ptr<TapeEntry> entry,
                         const std::function<void()> &body) {
  const size_t position = recording.entries.size();
  const bool isStep = isNew || !isMarked || intact.steps + steps() == 0;
  const bool isIntact = staysIntact(*entry);
  if (!isIntact && !intact.isOver)
    endIntact(position, isStep);
  if (!isIntact && (isStep || begins.empty()))
    open(position);
  if (!entry->isFirst())
    meet(*entry);
  entry->begin(nullptr);
  const uint64_t newest = runtime::newestIdentity();
  body();
  if (entry->obstacle().empty() && runtime::newestIdentity() > newest)
    made.emplace_back(newest, runtime::newestIdentity());
  entry->end(nullptr);
  follow(*entry);
  isIntact ? followIntact(*entry, isStep) : countTape(*entry);
  for (const TapeArgument &argument : entry->arguments)
    if (argument.array)
      keepFromStrangers(*argument.array);
  recording.append(std::move(entry));
  notePeak(0);
  ranAgain.reset();
  requireRoom();
}

void Checkpoints::clear() {
  snapshots.clear();
  schedule = Schedule(slots);
  begins.clear();
  expected = 0;
  intact = {};
  versions.clear();
  made.clear();
  wanted.clear();
  outside.memories.clear();
  isMarked = isNew = false;
  keptBytes = peak = 0;
  ranAgain.reset();
  tape = {};
  most = {};
  mostAtOnce = SIZE_MAX;
}

//===-- Room --------------------------------------------------------------===//

/// What is needed besides snapshots: what is kept of entries, what arrays hold
/// at the end, and the tape of a step.
size_t Checkpoints::fixedBytes() const {
  return keptBytes + snapshots.overwrittenBytes() + tapeOfOne();
}

void Checkpoints::limitSlots() {
  const size_t one = snapshots.largestBytes();
  if (!budget || !one)
    return;
  size_t left = budget - std::min(budget, fixedBytes());
  schedule.limit(std::clamp<size_t>(left / one, 1, slots));
}

/// There may be one more in front, which a write outside has begun.
void Checkpoints::dropState(size_t position) {
  snapshots.drop(position + snapshots.count() - schedule.kept().size());
  schedule.drop(position);
}

/// There are at least two.
void Checkpoints::dropOne() {
  schedule.limit(schedule.kept().size() - 1);
  dropState(*schedule.before(steps() - 1).drop);
}

void Checkpoints::makeRoom(size_t bytes) {
  while (budget && schedule.kept().size() > 1 &&
         fixedBytes() + snapshots.bytes() + bytes > budget)
    dropOne();
}

void Checkpoints::keepToBudget() {
  limitSlots();
  schedule.limit(std::max(schedule.limit(), schedule.kept().size()));
}

void Checkpoints::dropToBudget() {
  for (limitSlots(); schedule.kept().size() > schedule.limit(); limitSlots())
    dropOne();
}

void Checkpoints::requireRoom() const {
  if (!budget || fixedBytes() + snapshots.bytes() <= budget)
    return;
  const size_t one = snapshots.mergedBytes();
  if (fixedBytes() + one <= budget)
    return;
  using runtime::bytesText;
  raise(ErrorCode::OutOfMemory,
        "a `Tape` with a budget of " + bytesText(budget) + " needs at least " +
            bytesText(fixedBytes() + one) + ": " + bytesText(one) +
            " for one snapshot, " + bytesText(snapshots.overwrittenBytes()) +
            " for what arrays hold at the end, " + bytesText(tapeOfOne()) +
            " to reverse the largest step, and " + bytesText(keptBytes) +
            " for what cannot run again; give it more, or mark smaller steps");
}

size_t Checkpoints::room() const {
  if (snapshots.areElsewhere())
    return 0;
  const size_t held = schedule.kept().size();
  const size_t free = schedule.limit() > held ? schedule.limit() - held : 0;
  const size_t one = snapshots.largestBytes();
  return one && free > unlimited / one ? unlimited : free * one;
}

void Checkpoints::notePeak(size_t others) {
  peak = std::max(peak, bytes() + others);
}

//===-- Backwards ---------------------------------------------------------===//

/// How many steps can be reversed in one go.
size_t Checkpoints::atOnce() const {
  if (!most.hasSeen)
    return 1;
  size_t each = most.seenSeveral
                    ? most.seenSeveral
                    : std::min(most.several, most.seenOne + most.notRun);
  return std::min(each ? 1 + room() / each : SIZE_MAX, mostAtOnce);
}

Schedule::Pass Checkpoints::next(size_t end) const {
  return schedule.next(end, std::min(atOnce(), end));
}

void Checkpoints::noteTape(size_t bytes, bool isOne) {
  most.hasSeen = true;
  size_t &seen = isOne ? most.seenOne : most.seenSeveral;
  seen = std::max(seen, bytes);
}

void Checkpoints::restore() { checked(snapshots.restore()); }

void Checkpoints::restoreIntact() { checked(snapshots.restoreFirst()); }

void Checkpoints::keepState(size_t step) {
  schedule.keep(step);
  snapshots.take();
}

void Checkpoints::dropFrom(size_t end) {
  while (schedule.kept().size() > 1 && schedule.kept().back() >= end) {
    dropState(schedule.kept().size() - 1);
  }
}

void Checkpoints::addTo(TapeReport &report, const TapeImpl &tape) const {
  report.steps = expectedSteps();
  report.budget = budget;
  report.snapshots =
      std::min(schedule.limit(), std::max<size_t>(report.steps, 1));
  report.snapshots_taken = snapshots.count();
  report.snapshot_bytes = snapshots.largestBytes();
  report.steps_again =
      report.steps == 0 ? 0
      : ranAgain        ? *ranAgain
      : intact.steps + steps() < report.steps
          ? Schedule::optimum(report.steps, report.snapshots) + 1 - report.steps
          : schedule.cost(steps());
  report.bytes += bytes();
  report.peak_bytes = std::max(peak, report.bytes);
  for (size_t e = 0; e < tape.entries.size(); ++e) {
    const TapeEntry &entry = *tape.entries[e];
    if (size_t kept = entry.found.bytes())
      report.kept.push_back({tape.entryText(e),
                             "an array was written outside of the recording "
                             "before it",
                             kept});
    if (size_t kept = entry.results.bytes())
      report.kept.push_back({tape.entryText(e), entry.obstacle(), kept});
  }
}
