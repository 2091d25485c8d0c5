#pragma once
/// What arrays held at some earlier times.

#include "base/Fork.h"
#include "runtime/KeptMemory.h"

#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace costate::runtime {

/// A snapshot costs nothing when it is taken: what is overwritten afterwards is
/// copied once, up to the next one. So going back to one means going back to
/// all later ones; and what is dropped becomes part of the one before it.
///
/// One thread takes, restores and drops; any thread may write the arrays. While
/// they are restored, other threads are refused to read what may be old.
class Snapshots final : public ArrayWatcher {
public:
  Snapshots() = default;
  explicit Snapshots(KeptMemory::Place place) : place(std::move(place)) {}
  ~Snapshots();
  Snapshots(const Snapshots &) = delete;
  Snapshots &operator=(const Snapshots &) = delete;

  /// From now on `array` is a part of them: of those that are there, as it is.
  void add(const std::shared_ptr<ArrayStorage> &array);
  /// Before there is a snapshot: these elements must not be lost. Whoever
  /// writes them next begins the first one before that.
  void guard(const ArrayStorage &array, const Box &elements);
  /// Whether a write of these elements would begin the first one.
  bool wouldBegin(const ArrayStorage &array, const Box &elements) const;
  /// Everything as it is now.
  void take();
  /// As it was when the last one was taken. CannotReplay if something has been
  /// written that could not be kept.
  Result<> restore();
  /// As it was when the first one was taken; nothing without one.
  Result<> restoreFirst();
  /// The first one only as the last of all.
  void drop(size_t position);
  void clear();

  size_t count() const { return snapshots.size(); }
  size_t bytes() const; ///< of all copies
  size_t peakBytes() const;
  size_t largestBytes() const; ///< of one
  /// Of all elements that have been overwritten since the first one.
  size_t overwrittenBytes() const;
  /// Of one, if all became it: copies of the same element are all there if
  /// what was written together with it was not.
  size_t mergedBytes() const;
  /// What a write of these elements will add to bytes() and to
  /// overwrittenBytes(), together.
  size_t costOf(const ArrayStorage &array, const Box &elements) const;
  std::vector<std::shared_ptr<ArrayStorage>> arrays() const;
  /// They take memory that arrays and tapes cannot have.
  bool areElsewhere() const;

  /// Stands around what restores.
  void beginUse();
  void endUse();

  Result<bool> beforeWrite(const ArrayWrite &write) override;
  Result<> beforeRead(const ArrayStorage &array,
                      const std::function<std::string()> &reader) override;

private:
  /// What one write has overwritten.
  struct Piece {
    std::vector<Box> elements;
    std::shared_ptr<KeptMemory> values; ///< null: lost
    std::string writer;                 ///< then
  };
  /// Of one array since one snapshot: `region` has what `pieces` have.
  struct Part {
    Region region;
    std::vector<Piece> pieces; ///< the latest write first
  };
  struct Snapshot {
    std::map<uint64_t, Part> parts; ///< by identity
    size_t bytes = 0;
  };
  struct Known {
    std::shared_ptr<ArrayStorage> array;
    Region guarded;     ///< before the first snapshot
    Region overwritten; ///< since the first snapshot
    bool isWatching = false;
    bool refusesReads = false;
  };

  void watch(Known &known);
  Result<Piece> keep(const ArrayWrite &write, std::vector<Box> open) const;
  void count(Known &known, Snapshot &snapshot, const Piece &piece);
  Result<> restore(const Snapshot &snapshot);
  Result<> restore(const ArrayStorage &array, const Piece &piece);
  void merge(Snapshot &into, Snapshot &from);

  const KeptMemory::Place place;
  mutable Mutex mutex;           ///< guards what follows
  std::map<uint64_t, Known> all; ///< by identity
  std::vector<Snapshot> snapshots;
  size_t held = 0, peak = 0, largest = 0, overwritten = 0, merged = 0;
  std::thread::id user; ///< while they are restored
};

} // namespace costate::runtime
