#pragma once
/// The memory of an array with its shape and its history.

#include "base/Fork.h"
#include "runtime/Device.h"
#include "runtime/Region.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace costate::runtime {

struct ArrayStorage;
class ArrayWatcher;

/// A write that is about to happen.
struct ArrayWrite {
  ArrayStorage &array;
  Box elements;                        ///< all that may change
  std::function<std::string()> writer; ///< who writes, for messages
  /// The present contents come back. `observed`: somebody may look in between.
  bool temporary = false;
  bool observed = true;
  /// It cannot be refused: a watcher that fails has to live with it.
  bool certain = false;
  /// It has happened already: what was there is lost.
  bool past = false;
};

/// Wants to know before an array is used. Called by any thread that uses it.
class ArrayWatcher {
public:
  /// A failure refuses the use. Else whether it wants to know of later writes.
  virtual Result<bool> beforeWrite(const ArrayWrite &write) = 0;
  virtual Result<> beforeRead(const ArrayStorage &array,
                              const std::function<std::string()> &reader) = 0;

protected:
  ~ArrayWatcher() = default;
};

/// Who has allocated the memory of an array, if that is not its device.
struct MemoryOwner {
  std::shared_ptr<void> hold; ///< the memory lives as long; may be null
  bool isOrdered = false;     ///< knows what the device has queued
};

/// Shape, dtype and device never change; the memory is released with the last
/// owner.
struct ArrayStorage : std::enable_shared_from_this<ArrayStorage> {
  ArrayStorage(std::shared_ptr<Device> device, DType dtype,
               std::vector<int64_t> extents);
  ~ArrayStorage();
  ArrayStorage(const ArrayStorage &) = delete;
  ArrayStorage &operator=(const ArrayStorage &) = delete;

  const std::shared_ptr<Device> device;
  const DType dtype;
  const std::vector<int64_t> extents;
  const uint64_t identity; ///< unique in this process, grows with age
  int64_t size = 1;        ///< elements
  Buffer buffer;
  std::atomic<uint64_t> version = 0; ///< counts writes by launches and the host
  std::atomic<uint64_t> lastWrite =
      0; ///< of those to any array, see writeCount
  void countWrite();
  /// Changes whenever the memory may have changed, for a while too; no two
  /// contents have the same one.
  uint64_t contents() const { return changed; }
  void noteChange() const;
  /// Has adopted other memory, of as many bytes, in the place of its own.
  void moveTo(void *address);
  /// The host writes it through an address that it has been told.
  std::atomic<bool> isOpen = false;
  std::optional<MemoryOwner> owner; ///< none: the device
  /// Others that may write the memory and do not say so.
  std::atomic<int> strangers = 0;
  std::shared_ptr<ArrayStorage> grad, dual; ///< or null

  /// An adjoint or a tangent. Its own tangent, if `makesTangent`, is made when
  /// it is first asked for.
  bool isCompanion = false, makesTangent = false;
  bool isScratch = false; ///< what is written is not read before
  /// Of its tangent, which has an outermost extent for them; 0: one, without.
  int64_t directions = 0;
  /// Of elements that are no numbers, whose numbers stand in this dimension.
  ElementForm form;
  size_t componentDim = 0;
  /// Of an array of which little is not zero, if that is its name.
  static constexpr std::string_view sparseForm = "sparse";
  /// Repeats a pattern in `part` of the buffer.
  Result<> fill(Buffer part, const void *pattern, size_t patternBytes);
  bool hasTangent() const { return dual || makesTangent; }
  /// The tangent array, zero at first; null if there is none. OutOfMemory.
  Result<std::shared_ptr<ArrayStorage>> tangent();

  /// Watchers must live until they are removed. `begin` runs while nobody is
  /// told anything, and says whether `watcher` is a new one.
  void watch(ArrayWatcher &watcher, const std::function<bool()> &begin);
  void unwatch(ArrayWatcher &watcher);
  /// Whoever uses the array asks this first, and announces the use if so.
  bool isWatched() const { return watched.load(std::memory_order_relaxed); }
  /// Tells all watchers but `self`; stops at the first one that refuses.
  Result<> announce(const ArrayWrite &write,
                    const ArrayWatcher *self = nullptr);
  Result<> announceRead(const std::function<std::string()> &reader);
  /// How many watchers have reason to refuse a read.
  std::atomic<int> readRefusers = 0;

private:
  mutable std::atomic<uint64_t> changed = 0;
  Mutex mutex;
  std::shared_ptr<ArrayStorage> madeTangent;
  std::atomic<bool> watched = false;
  Mutex watchMutex; ///< held while watchers are told
  std::vector<ArrayWatcher *> watchers;
};

/// The shape in elements, which is that of numbers unless the array has a form.
std::vector<int64_t> elementExtents(const ArrayStorage &array);
/// `f64 of shape (64, 3)`, `Vec<f64, 3> of shape (64)`
std::string contentsText(const ArrayStorage &array);

/// A zeroed array, with a zeroed adjoint and tangent if asked for. BadArgument
/// or OutOfMemory with the shape in the text. `extents` count elements.
Result<std::shared_ptr<ArrayStorage>>
makeArray(std::shared_ptr<Device> device, DType dtype,
          const std::vector<int64_t> &extents, bool withGrad, bool withDual,
          int64_t directions = 0, const ElementForm &form = {});

/// The same over memory of somebody else, and perhaps its adjoint too.
struct AdoptedMemory {
  std::byte *address = nullptr;
  MemoryOwner owner;
  bool isStrange = false; ///< its owner does not say when it writes
};
Result<std::shared_ptr<ArrayStorage>>
adoptArray(std::shared_ptr<Device> device, DType dtype,
           const std::vector<int64_t> &extents, AdoptedMemory memory,
           bool withGrad, bool withDual, std::optional<AdoptedMemory> gradient);

constexpr int64_t maxDirections = 16;

/// How many writes to arrays have been counted in this process.
uint64_t writeCount();

/// The identity of the array that was made last.
uint64_t newestIdentity();

/// `(64, 3)`
std::string shapeText(const std::vector<int64_t> &extents);

} // namespace costate::runtime
