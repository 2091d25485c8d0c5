#pragma once
/// A `Tape` that takes snapshots and runs launches again.

#include "api/TapeEntry.h"
#include "costate/tape.h"
#include "runtime/Schedule.h"
#include "runtime/Snapshots.h"

#include <set>

namespace costate::detail {

struct TapeImpl;

/// The steps of a recording, and what is kept of them.
class Checkpoints {
public:
  /// With `snapshots` or `budget`; if one is 0, there is no limit of that kind.
  explicit Checkpoints(const TapeOptions &options);

  /// What follows, up to the next mark, is one step.
  void mark();
  /// What follows are steps of one entry each.
  void endMarks() { isMarked = false; }
  /// So many steps follow.
  void expect(size_t count);
  /// Runs `body` as `entry` of the recording; if it throws, it was none.
  void record(TapeImpl &recording, std::unique_ptr<TapeEntry> entry,
              const std::function<void()> &body);
  /// Whether its array begins with it.
  bool beginsWith(const HostWriteEntry &entry) const;
  void clear();

  bool hasBudget() const { return budget > 0; }
  /// Those from the first snapshot on. In front of them, entries are intact:
  /// nothing that their gradients look at had been overwritten.
  size_t steps() const { return begins.size(); }
  size_t intactSteps() const { return intact.steps; }
  size_t expectedSteps() const {
    return std::max(intact.steps + steps(), expected);
  }
  /// How many of `tape` are intact once there is the first snapshot, if any.
  size_t intactEntries(const TapeImpl &tape) const;
  /// The first entry of `step`; of the last one and one: the end.
  size_t begin(const TapeImpl &tape, size_t step) const;

  /// Before the pass backwards: leaves room for all that is known by then.
  void dropToBudget();
  /// Within it: states may have become larger.
  void keepToBudget();
  /// For the pass backwards: goes back to the state kept last.
  runtime::Schedule::Pass next(size_t end) const;
  void restore();
  void restoreIntact();
  size_t lastState() const { return schedule.kept().back(); }
  void keepState(size_t step);
  /// States before steps from `end` on, but the first.
  void dropFrom(size_t end);
  /// Bytes that the tapes of several steps may take together.
  size_t room() const;
  /// A step was run to be reversed, by itself or with others, and needed so
  /// much.
  void noteTape(size_t bytes, bool isOne);
  size_t tapeOfOne() const { return std::max(most.one, most.seenOne); }
  /// So many steps at once were too many.
  void limitSteps(size_t most) { mostAtOnce = most; }
  /// Counts steps that this pass has run again, from its begin.
  void beginRuns() { ranAgain = 0; }
  void noteRuns(size_t count) { *ranAgain += count; }
  /// Counts what there is besides snapshots.
  void notePeak(size_t others);

  runtime::Snapshots &states() { return snapshots; }
  size_t bytes() const { return snapshots.bytes() + keptBytes; }
  size_t peakBytes() const { return peak; }
  void addTo(TapeReport &report, const TapeImpl &tape) const;

private:
  bool canBegin(const runtime::ArrayStorage &array) const;
  bool staysIntact(const TapeEntry &entry) const;
  void endIntact(size_t entry, bool isStep);
  void open(size_t entry);
  void meet(TapeEntry &entry);
  void follow(TapeEntry &entry);
  void followIntact(const TapeEntry &entry, bool isStep);
  void countTape(TapeEntry &entry);
  size_t fixedBytes() const;
  size_t atOnce() const;
  void limitSlots();
  void dropState(size_t position);
  /// For so many bytes more, if states can be dropped.
  void makeRoom(size_t bytes);
  void dropOne();
  void requireRoom() const;

  const size_t slots, budget;
  size_t expected = 0; ///< steps, intact ones too
  struct Intact {
    size_t steps = 0;
    size_t entries = 0;
    bool isOver = false; ///< others have followed
  } intact;
  std::vector<size_t> begins; ///< by step: its first entry
  bool isMarked = false, isNew = false;
  runtime::Schedule schedule;
  runtime::Snapshots snapshots;
  /// What arrays held outside of snapshots.
  ContentsPlace outside;
  size_t keptBytes = 0;
  /// After the first identity of each pair and up to the second: arrays that
  /// entries have made which will run again.
  std::vector<std::pair<uint64_t, uint64_t>> made;
  /// ArrayStorage::version after the last entry that used it, by identity.
  std::map<uint64_t, uint64_t> versions;

  /// Of the step that is recorded, bytes that its tape may take.
  struct StepTape {
    size_t bytes = 0;
    size_t last = 0;    ///< of the last entry, if another one follows
    size_t several = 0; ///< if another step follows
    std::set<const runtime::ArrayStorage *> wanted; ///< by gradients
  };
  /// Of all steps the largest, as expected and as seen.
  struct LargestTape {
    size_t one = 0, several = 0, notRun = 0;
    size_t seenOne = 0, seenSeveral = 0;
    bool hasSeen = false;
  };
  StepTape tape;
  LargestTape most;
  std::set<const runtime::ArrayStorage *> wanted; ///< of all steps
  size_t mostAtOnce = SIZE_MAX;
  size_t peak = 0;
  std::optional<size_t> ranAgain; ///< steps, in the last pass
};

} // namespace costate::detail
