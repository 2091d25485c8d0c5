#pragma once
/// What a `Tape` holds: one object for each thing that happened.

#include "api/KeptContents.h"
#include "api/VersionArrays.h"
#include "runtime/VersionLog.h"

#include <map>

namespace costate::detail {

/// One array of an entry, or null for a scalar.
struct TapeArgument {
  std::shared_ptr<runtime::ArrayStorage> array;
  bool read = false;
  bool written = false;
  bool replaced = false; ///< all elements are written, without a derivative
  uint64_t before = 0, after = 0; ///< write counts
};

/// Elements that the gradient of an entry looks at.
struct Want {
  size_t argument;
  runtime::Box elements;
  uint64_t time;         ///< of the VersionLog
  bool inPlace = true;   ///< it looks at the array itself
  bool optional = false; ///< it may look at them, or not
};

/// What an entry is reversed with.
struct Reversing {
  runtime::VersionLog &log;
  /// By device; used by one entry at a time.
  MemoryByDevice &scratch;
  /// The arrays of the recording and their last uses by an entry.
  const std::map<const runtime::ArrayStorage *, TapeArgument *> &lastUse;
  /// ArrayStorage::lastWrite before `backward` of what code of the user has
  /// written in it, by identity.
  std::map<uint64_t, uint64_t> &lastWrites;
};

class TapeEntry {
public:
  virtual ~TapeEntry() = default;
  TapeEntry() = default;
  TapeEntry(const TapeEntry &) = delete;
  TapeEntry &operator=(const TapeEntry &) = delete;

  /// "kernel `square` (demo.cpp:7)"
  virtual std::string title() const = 0;
  /// "argument 2"
  virtual std::string argumentText(size_t argument) const;
  /// Throws if it has no gradient.
  virtual void requireGradient() const {}
  /// Whether it writes differentiable values to `argument`.
  virtual bool writesActive(size_t) const { return false; }
  /// What arrays held that the entry itself has overwritten.
  virtual const VersionArrays &overwritten() const;
  /// Whether what it writes depends on nothing.
  virtual bool isConstant() const { return false; }
  /// Whether code of the user runs in reverse().
  virtual bool isForeign() const { return false; }
  virtual void reverse(const Reversing &with) const = 0;

  /// To be called before what the entry stands for, and after it or after it
  /// has failed. Without `log` nothing is kept.
  void begin(runtime::VersionLog *log);
  void end(runtime::VersionLog *log);
  void abandon(runtime::VersionLog &log) const;

  using Visit =
      std::function<void(const std::shared_ptr<runtime::ArrayStorage> &array,
                         const runtime::Box *written)>;
  /// Of a `Tape` that takes snapshots: all arrays that it uses, but gradients.
  virtual void forEachUse(const Visit &visit) const;
  /// Why it cannot run again, so that what it writes is kept; or empty.
  virtual std::string obstacle() const { return ""; }
  /// Whether its gradient looks at what it writes.
  virtual bool needsRun() const { return false; }
  /// Whether its gradient finds all that it looks at in arrays until somebody
  /// else overwrites that, however much the entry itself has written.
  virtual bool leavesAll() const { return false; }
  /// Bytes that it keeps from between its parts.
  virtual size_t partBytes() const { return 0; }
  /// Whether arrays begin with it: before it nobody has used them.
  virtual bool isFirst() const { return false; }
  /// Keeps what it has written to arrays that must have it `again`.
  void
  keepResults(ContentsPlace &place,
              const std::function<bool(const runtime::ArrayStorage &)> &again);
  /// Does it once more, as what it depends on is in place.
  void repeat();
  /// The same if `runs`, as in a recording: keeps what its gradient needs.
  void record(runtime::VersionLog &log, bool runs);
  /// Of what record() has kept.
  virtual void forget() {}

  /// What it found in arrays that had been written outside of the recording.
  KeptContents found;
  KeptContents results; ///< of one that cannot run again

  /// reverse() changes the gradients of these.
  // One of each in one piece of memory: a pass that is long waits for memory.
  boost::container::small_vector<TapeArgument, 2> arguments;
  boost::container::small_vector<Want, 2> wants;
  uint64_t over = 0; ///< when it was, of the VersionLog
  /// The adjoints or tangents that a derivative has left in memory.
  std::vector<std::shared_ptr<runtime::ArrayStorage>> derivatives;

protected:
  virtual void runAgain() {}
  /// The same, to keep what its gradient needs.
  virtual void runToKeep(runtime::VersionLog &) { runAgain(); }
  virtual void wantBefore(runtime::VersionLog *) {}
  virtual void wantAfter(runtime::VersionLog *) {}
  void want(runtime::VersionLog *log, size_t argument, runtime::Box elements,
            bool inPlace = true, bool optional = false);
  /// Puts what `want` looks at in place; of another array, what was there after
  /// the entry.
  void rewind(const Reversing &with, const Want &want) const;

private:
  std::vector<runtime::Region> added; ///< by want, until the end
};

/// The host sets elements of an array: to constants.
class HostWriteEntry final : public TapeEntry {
public:
  HostWriteEntry(std::shared_ptr<runtime::ArrayStorage> array,
                 runtime::Box elements, Loc loc);

  /// The array begins with it, so it is never done again: whenever entries
  /// run, the array holds what it has written.
  void beFirst() { first = true; }
  /// What it writes, packed: it can be done again.
  void keep(std::span<const std::byte> contents);

  std::string title() const override;
  void reverse(const Reversing &with) const override;
  bool isConstant() const override { return true; }
  bool leavesAll() const override { return true; }
  bool isFirst() const override { return first; }
  void forEachUse(const Visit &visit) const override;
  size_t bytes() const { return values.size(); }

private:
  void runAgain() override;

  const runtime::Box elements;
  const Loc loc;
  bool first = false;
  std::vector<std::byte> values; ///< or one number, if all are the same
};

/// A gradient by hand: nothing to reverse, but what it leaves in `derivatives`
/// has a derivative that nobody knows.
class DerivativeEntry final : public TapeEntry {
public:
  explicit DerivativeEntry(std::string text) : text(std::move(text)) {}

  std::string title() const override { return text; }
  void reverse(const Reversing &) const override {}

private:
  const std::string text;
};

/// Who writes while a recording is reversed.
std::string reverserText();

/// Sets elements, or all, as `backward` of a `Tape` does.
void fillGradient(runtime::ArrayStorage &gradient, double value,
                  const runtime::Box &elements);
void fillGradient(runtime::ArrayStorage &gradient, double value);

/// "a write by the host (demo.cpp:7)"
std::string hostWriteText(Loc loc);

} // namespace costate::detail
