#pragma once
/// What arrays held at earlier times.

#include "base/Fork.h"
#include "runtime/ArrayStorage.h"
#include "runtime/CopyMemory.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace costate::runtime {

/// Remembers the elements that somebody wants: before one of them is
/// overwritten, it is copied, and nothing else ever is. Time counts wants.
///
/// One thread wants, rewinds and restores. Any thread may use watched arrays
/// meanwhile; while the log is in use (rewound, or a log for Undo), other
/// threads are refused to write what it may look at, and to read what it may
/// have rewound.
class VersionLog final : public ArrayWatcher {
public:
  enum class Purpose : uint8_t {
    Versions, ///< for later, whoever writes
    Undo,     ///< of what the thread that makes the log writes until it is gone
  };
  enum class Loss : uint8_t { None, Forbidden, Memory, Unseen };

  /// What one write has overwritten.
  struct Copy {
    ArrayStorage *array;
    /// Boxes that have no element in common.
    boost::container::small_vector<Box, 1> elements;
    Buffer values; ///< packed; none if they are lost
    Loss loss = Loss::None;
    uint64_t time = 0;  ///< of the last want before
    uint64_t order = 0; ///< counts the copies of this log
    const std::string *writer;
    std::optional<size_t> entry; ///< the one recorded when it was overwritten
    bool meets(const Box &box) const;
    int64_t size() const; ///< elements
  };

  explicit VersionLog(Purpose purpose);
  ~VersionLog();
  VersionLog(const VersionLog &) = delete;
  VersionLog &operator=(const VersionLog &) = delete;

  /// From now on what `elements` hold at present must not be lost. Returns the
  /// time to rewind to, and in `added` the elements that nobody wanted before.
  /// What is `optional` everywhere in an array may be lost if memory is short.
  uint64_t want(const std::shared_ptr<ArrayStorage> &array, const Box &elements,
                Region *added = nullptr, bool optional = false);
  /// What is overwritten from now on is later than the time it returns, and
  /// what was overwritten before is not.
  uint64_t tick();
  /// Takes back a want: nobody else wants `added`.
  void drop(const ArrayStorage &array, const Region &added);
  /// What is overwritten in this array, or in any, is lost from now on.
  void forbidCopies(const ArrayStorage &array);
  void forbidCopies();
  bool mayCopy(const ArrayStorage &array) const;

  /// What `thread` writes from now on belongs to `entry` of a recording.
  void beginEntry(std::thread::id thread, size_t entry);
  void endRecording();

  Result<bool> beforeWrite(const ArrayWrite &write) override;
  Result<> beforeRead(const ArrayStorage &array,
                      const std::function<std::string()> &reader) override;

  /// The first write since `time` that has lost some of `elements`, or null.
  const Copy *loss(const ArrayStorage &array, const Box &elements,
                   uint64_t time) const;

  /// The begin of an array like `array` in which `elements` are as they were at
  /// `time`, if they were wanted: that of `array` itself, or one such that they
  /// stand in a copy; nothing else may be looked at. Null if they stand in
  /// several copies, or apart. Times must not ascend.
  std::byte *findArray(const ArrayStorage &array, const Box &elements,
                       uint64_t time);
  /// Puts in place what `array` held at `time`, as far as it was wanted, and
  /// what it holds now aside. Times must not ascend.
  Result<> rewind(const ArrayStorage &array, uint64_t time);
  /// Copies what `elements` of `array`, and perhaps others, held at `time` to
  /// the same places of `to`, which has room for all of `array`.
  Result<> read(const ArrayStorage &array, const Box &elements, uint64_t time,
                Buffer to);
  /// The newest contents back in place; cannot fail.
  void restore();
  /// Puts everything in place that the log holds, for good: counts as a write.
  void rollBack();
  /// Forgets all wants and copies.
  void clear();

  /// Stands before the first rewind. `observed`: others may look at the arrays
  /// until they are restored.
  void beginUse(bool observed);
  void endUse();

  /// In the order of time.
  std::vector<const Copy *> copies() const;
  /// What a write of these elements would add to bytes().
  size_t costOf(const ArrayStorage &array, const Box &elements) const;
  /// For copies that the log does not make itself; lives at least until
  /// clear().
  std::shared_ptr<CopyMemory> memoryOf(const std::shared_ptr<Device> &device);
  /// Counts copies that are kept elsewhere until clear().
  void countBytes(size_t bytes);
  /// Of all copies: now, and at most since the log was made or cleared.
  size_t bytes() const;
  size_t peakBytes() const;

private:
  struct History {
    std::shared_ptr<ArrayStorage> array;
    Region wanted;           ///< what must be copied before it is overwritten
    std::deque<Copy> copies; ///< in the order of time
    size_t undone = 0;       ///< how many of them, from the last, are in place
    bool isWatching = false;
    bool hasLosses = false;
    bool refusesReads = false;
    bool optional = true;
  };
  struct Contents {
    std::map<uint64_t, History> histories; ///< by the identity of the array
    std::map<const Device *, std::shared_ptr<CopyMemory>> memories;
    std::set<std::string> writers;
  };

  History *find(const ArrayStorage &array);
  History *findInUse(const ArrayStorage &array);
  void watch(const std::shared_ptr<ArrayStorage> &array,
             const std::function<void(History &)> &begin);
  void refuseOthers();
  bool isForeign() const;
  Result<> refuseForeign(const History &history, const ArrayWrite &write) const;
  Result<> keep(History &history, const ArrayWrite &write);
  bool isAllowed(const ArrayStorage &array) const;
  Result<> fill(Copy &copy, const ArrayWrite &write, bool optional);
  const std::shared_ptr<CopyMemory> &
  memoryFor(const std::shared_ptr<Device> &device);
  Result<> exchange(const Copy &copy, bool temporary, bool certain) const;

  const Purpose purpose;
  std::atomic<bool> hasLosses = false;
  mutable Mutex mutex; ///< guards what follows
  Contents contents;
  uint64_t time = 0, count = 0;
  std::thread::id recorder; ///< while something is recorded
  size_t entry = 0;
  bool copiesAllowed = true;
  std::set<uint64_t> notToCopy; ///< identities
  bool observed = true;
  std::thread::id user; ///< while the log is in use
  size_t held = 0, peak = 0;
};

} // namespace costate::runtime
