#include "runtime/VersionLog.h"

#include "runtime/ArrayRows.h"

#include <algorithm>
#include <utility>

namespace costate::runtime {

static std::string describe(const ArrayStorage &array) {
  return "an array of " + contentsText(array);
}

/// Visits the rows of `copy` in memory like that of its array at `start`, and
/// packed in its values.
template <class Visit>
static Result<> forEachPiece(const VersionLog::Copy &copy, std::byte *start,
                             Visit visit) {
  return forEachPiece(*copy.array, {copy.elements.data(), copy.elements.size()},
                      copy.values.address, start, visit);
}

bool VersionLog::Copy::meets(const Box &box) const {
  return std::ranges::any_of(elements,
                             [&](const Box &part) { return meet(part, box); });
}

int64_t VersionLog::Copy::size() const {
  int64_t sum = 0;
  for (const Box &box : elements)
    sum += box.size();
  return sum;
}

VersionLog::VersionLog(Purpose purpose) : purpose(purpose) {
  if (purpose == Purpose::Undo)
    beginUse(/*observed=*/true);
}

VersionLog::~VersionLog() {
  endUse();
  clear();
}

void VersionLog::beginUse(bool byOthers) {
  {
    std::lock_guard lock(mutex);
    user = std::this_thread::get_id();
    observed = byOthers;
  }
  try {
    refuseOthers();
  } catch (...) {
    endUse();
    throw;
  }
}

/// Of the arrays that may be rewound; only the user of the log adds others.
void VersionLog::refuseOthers() {
  for (auto &[identity, history] : contents.histories)
    if (!history.copies.empty()) {
      watch(history.array, [](History &) {});
      history.refusesReads = purpose == Purpose::Versions;
      history.array->readRefusers += history.refusesReads;
    }
}

void VersionLog::endUse() {
  std::lock_guard lock(mutex);
  user = std::thread::id();
  for (auto &[identity, history] : contents.histories) {
    history.array->readRefusers -= history.refusesReads;
    history.refusesReads = false;
  }
}

VersionLog::History *VersionLog::find(const ArrayStorage &array) {
  auto found = contents.histories.find(array.identity);
  return found == contents.histories.end() ? nullptr : &found->second;
}

/// Not to be called with the lock: an array is locked before its watchers.
void VersionLog::watch(const std::shared_ptr<ArrayStorage> &array,
                       const std::function<void(History &)> &begin) {
  array->watch(*this, [&] {
    std::lock_guard lock(mutex);
    History &history = contents.histories[array->identity];
    if (!history.array)
      history.array = array;
    begin(history);
    return !std::exchange(history.isWatching, true);
  });
}

uint64_t VersionLog::want(const std::shared_ptr<ArrayStorage> &array,
                          const Box &elements, Region *added, bool optional) {
  uint64_t now = 0;
  watch(array, [&](History &history) {
    history.optional &= optional;
    if (added) {
      *added = Region(elements);
      for (const Box &known : history.wanted.within(elements).boxes())
        added->remove(known);
    }
    history.wanted.add(elements);
    now = ++time;
  });
  return now;
}

uint64_t VersionLog::tick() {
  std::lock_guard lock(mutex);
  return ++time;
}

void VersionLog::drop(const ArrayStorage &array, const Region &added) {
  std::lock_guard lock(mutex);
  if (History *history = find(array))
    for (const Box &box : added.boxes())
      history->wanted.remove(box);
}

void VersionLog::forbidCopies(const ArrayStorage &array) {
  std::lock_guard lock(mutex);
  notToCopy.insert(array.identity);
}

void VersionLog::forbidCopies() {
  std::lock_guard lock(mutex);
  copiesAllowed = false;
}

bool VersionLog::isAllowed(const ArrayStorage &array) const {
  return copiesAllowed && !notToCopy.contains(array.identity);
}

bool VersionLog::mayCopy(const ArrayStorage &array) const {
  std::lock_guard lock(mutex);
  return isAllowed(array);
}

void VersionLog::beginEntry(std::thread::id thread, size_t number) {
  std::lock_guard lock(mutex);
  recorder = thread;
  entry = number;
}

void VersionLog::endRecording() {
  std::lock_guard lock(mutex);
  recorder = std::thread::id();
}

Result<> VersionLog::refuseForeign(const History &history,
                                   const ArrayWrite &write) const {
  bool touches = history.wanted.meets(write.elements);
  for (const Copy &copy : history.copies)
    touches |= copy.meets(write.elements);
  if (!touches || write.certain)
    return {};
  return Failure{ErrorCode::BadArgument,
                 write.writer() + " writes to " + describe(write.array) +
                     " that `backward` of a `Tape` is using on another thread; "
                     "wait until that has returned"};
}

/// Whether another thread uses the log.
bool VersionLog::isForeign() const {
  return user != std::thread::id() && user != std::this_thread::get_id();
}

Result<> VersionLog::beforeRead(const ArrayStorage &array,
                                const std::function<std::string()> &reader) {
  std::lock_guard lock(mutex);
  History *history = find(array);
  if (purpose == Purpose::Undo || !history || history->copies.empty() ||
      !isForeign())
    return {};
  return Failure{
      ErrorCode::BadArgument,
      reader() + " reads " + describe(array) +
          ", which holds old values while `backward` of a `Tape` runs "
          "on another thread; wait until that has returned"};
}

Result<bool> VersionLog::beforeWrite(const ArrayWrite &write) {
  std::lock_guard lock(mutex);
  History *history = find(write.array);
  if (!history)
    return false;
  if (isForeign()) {
    Result<> allowed = refuseForeign(*history, write);
    return allowed ? Result<bool>(true) : allowed.error();
  }
  const bool used = user != std::thread::id();
  // The user of the log puts things right itself.
  if (used && purpose == Purpose::Versions)
    return true;
  if (write.temporary && (purpose == Purpose::Undo || !write.observed))
    return true;
  if (Result<> kept = keep(*history, write); !kept)
    return kept.error();
  history->isWatching = used || !history->wanted.empty();
  return history->isWatching;
}

Result<> VersionLog::keep(History &history, const ArrayWrite &write) {
  const bool all = write.elements.size() == history.array->size;
  std::vector<Box> overwritten =
      all ? history.wanted.boxes()
          : history.wanted.within(write.elements).boxes();
  if (overwritten.empty())
    return {};
  Copy copy;
  copy.array = history.array.get();
  copy.elements.assign(std::make_move_iterator(overwritten.begin()),
                       std::make_move_iterator(overwritten.end()));
  copy.time = time;
  copy.writer = &*contents.writers.insert(write.writer()).first;
  copy.order = count++;
  if (recorder == std::this_thread::get_id())
    copy.entry = entry;
  if (Result<> done = fill(copy, write, history.optional); !done)
    return done;
  held += copy.values.bytes;
  peak = std::max(peak, held);
  if (copy.loss != Loss::None)
    hasLosses = history.hasLosses = true;
  history.copies.push_back(std::move(copy));
  all ? history.wanted.clear() : history.wanted.remove(write.elements);
  return {};
}

const std::shared_ptr<CopyMemory> &
VersionLog::memoryFor(const std::shared_ptr<Device> &device) {
  std::shared_ptr<CopyMemory> &memory = contents.memories[device.get()];
  if (!memory)
    memory = std::make_shared<CopyMemory>(device);
  return memory;
}

std::shared_ptr<CopyMemory>
VersionLog::memoryOf(const std::shared_ptr<Device> &device) {
  std::lock_guard lock(mutex);
  return memoryFor(device);
}

/// Whether a copy leaves most of the free memory to others.
static bool isSmall(const VersionLog::Copy &copy) {
  const ArrayStorage &array = *copy.array;
  size_t used = array.device->memory().current;
  size_t limit = array.device->info().memoryLimit;
  size_t bytes = static_cast<size_t>(copy.size()) * sizeOf(array.dtype);
  return used < limit && bytes <= (limit - used) / 4;
}

Result<> VersionLog::fill(Copy &copy, const ArrayWrite &write, bool optional) {
  const ArrayStorage &array = *copy.array;
  if (write.past) {
    copy.loss = Loss::Unseen;
    return {};
  }
  if (!isAllowed(array)) {
    copy.loss = Loss::Forbidden;
    return {};
  }
  if (optional && !isSmall(copy)) {
    copy.loss = Loss::Memory;
    return {};
  }
  Result<Buffer> values =
      memoryFor(array.device)
          ->take(static_cast<size_t>(copy.size()) * sizeOf(array.dtype));
  if (!values && (write.certain || optional)) {
    copy.loss = Loss::Memory;
    return {};
  }
  if (!values)
    return Failure{values.error().code,
                   *copy.writer + " overwrites values of " + describe(array) +
                       " that a `Tape` needs, and there is no memory to keep "
                       "them: " +
                       values.error().text +
                       "; nothing has been written; call `backward` and "
                       "`clear` before, or give the array a time index"};
  copy.values = *values;
  return forEachPiece(copy, array.buffer.address,
                      [&](Rows original, Rows packed) {
                        return array.device->copy(packed, original);
                      });
}

const VersionLog::Copy *VersionLog::loss(const ArrayStorage &array,
                                         const Box &elements,
                                         uint64_t since) const {
  if (!hasLosses)
    return nullptr;
  std::lock_guard lock(mutex);
  auto found = contents.histories.find(array.identity);
  if (found == contents.histories.end() || !found->second.hasLosses)
    return nullptr;
  Region open(elements); // not known to be in any copy
  const std::deque<Copy> &copies = found->second.copies;
  auto copy = std::ranges::lower_bound(copies, since, {}, &Copy::time);
  for (; copy != copies.end() && !open.empty(); ++copy)
    for (const Box &box : copy->elements) {
      if (copy->loss != Loss::None && open.meets(box))
        return &*copy;
      open.remove(box);
    }
  return nullptr;
}

Result<> VersionLog::exchange(const Copy &copy, bool temporary,
                              bool certain) const {
  if (copy.loss != Loss::None)
    return {};
  for (const Box &box : copy.elements) {
    ArrayWrite write{*copy.array, box,
                     [] { return std::string("`backward` of a `Tape`"); }};
    write.temporary = temporary;
    write.observed = observed;
    write.certain = certain;
    if (Result<> allowed = copy.array->announce(write, this); !allowed)
      return allowed;
  }
  return forEachPiece(copy, copy.array->buffer.address,
                      [&](Rows original, Rows packed) {
                        copy.array->noteChange();
                        return copy.array->device->exchange(original, packed);
                      });
}

/// While the log is in use, copies change only by the thread that uses it.
VersionLog::History *VersionLog::findInUse(const ArrayStorage &array) {
  std::lock_guard lock(mutex);
  return find(array);
}

/// The begin of an array like that of `copy`, of which the part in `elements`
/// is in the copy; null if there is none.
static std::byte *arrayAround(const VersionLog::Copy &copy,
                              const Box &elements) {
  const ArrayStorage &array = *copy.array;
  if (copy.loss != VersionLog::Loss::None || copy.elements.size() != 1)
    return nullptr;
  const Box &box = copy.elements.front();
  if (box.size() == array.size)
    return copy.values.address;
  // Drivers of GPUs may check that addresses are those of memory.
  if (array.device->hostCopies() || !contains(box, elements))
    return nullptr;
  int64_t first = -1, runs = 0;
  forEachRuns(box, array.extents, [&](const Runs &found) {
    first = found.first;
    runs += found.count;
  });
  return runs == 1 ? copy.values.address -
                         static_cast<size_t>(first) * sizeOf(array.dtype)
                   : nullptr;
}

std::byte *VersionLog::findArray(const ArrayStorage &array, const Box &elements,
                                 uint64_t since) {
  constexpr int farthest = 4; // copies of other elements
  std::byte *const present = array.buffer.address;
  const History *history = findInUse(array);
  if (!history)
    return present;
  auto end = history->copies.end() - static_cast<long>(history->undone);
  auto copy = std::ranges::lower_bound(history->copies.begin(), end, since, {},
                                       &Copy::time);
  for (int others = 0; copy != end && others < farthest; ++copy, ++others)
    if (copy->meets(elements))
      return arrayAround(*copy, elements);
  return copy == end ? present : nullptr;
}

Result<> VersionLog::rewind(const ArrayStorage &array, uint64_t to) {
  History *history = findInUse(array);
  while (history && history->undone < history->copies.size()) {
    const Copy &last =
        history->copies[history->copies.size() - 1 - history->undone];
    if (last.time < to)
      break;
    if (Result<> done = exchange(last, /*temporary=*/true, /*certain=*/false);
        !done)
      return done;
    ++history->undone;
  }
  return {};
}

static Result<> copyElements(const ArrayStorage &from, const Box &elements,
                             Buffer to) {
  std::byte *start = from.buffer.address;
  return forEachRows(from, elements, start, [&](Rows rows) {
    Rows there = rows;
    there.address = to.address + (rows.address - start);
    return from.device->copy(there, rows);
  });
}

Result<> VersionLog::read(const ArrayStorage &array, const Box &elements,
                          uint64_t since, Buffer to) {
  Result<> done = copyElements(array, elements, to);
  History *history = findInUse(array);
  if (!history)
    return done;
  // What the earliest write has overwritten comes last.
  for (size_t i = history->copies.size() - history->undone; i-- > 0;) {
    const Copy &copy = history->copies[i];
    if (!done || copy.time < since)
      break;
    if (copy.loss == Loss::None)
      done = forEachPiece(copy, to.address, [&](Rows original, Rows packed) {
        return array.device->copy(original, packed);
      });
  }
  return done;
}

void VersionLog::restore() {
  for (auto &[identity, history] : contents.histories)
    for (; history.undone > 0; --history.undone)
      (void)exchange(history.copies[history.copies.size() - history.undone],
                     /*temporary=*/true, /*certain=*/true);
}

void VersionLog::rollBack() {
  for (auto &[identity, history] : contents.histories) {
    if (history.undone < history.copies.size())
      history.array->countWrite();
    for (; history.undone < history.copies.size(); ++history.undone)
      (void)exchange(history.copies[history.copies.size() - 1 - history.undone],
                     /*temporary=*/false, /*certain=*/true);
  }
}

void VersionLog::clear() {
  Contents gone;
  {
    std::lock_guard lock(mutex);
    std::swap(gone, contents);
    hasLosses = false;
    held = peak = 0;
  }
  for (auto &[identity, history] : gone.histories) {
    history.array->readRefusers -= history.refusesReads;
    if (history.isWatching)
      history.array->unwatch(*this);
  }
}

std::vector<const VersionLog::Copy *> VersionLog::copies() const {
  std::lock_guard lock(mutex);
  std::vector<const Copy *> all;
  for (const auto &[identity, history] : contents.histories)
    for (const Copy &copy : history.copies)
      all.push_back(&copy);
  std::sort(all.begin(), all.end(),
            [](const Copy *a, const Copy *b) { return a->order < b->order; });
  return all;
}

void VersionLog::countBytes(size_t bytes) {
  std::lock_guard lock(mutex);
  held += bytes;
  peak = std::max(peak, held);
}

size_t VersionLog::costOf(const ArrayStorage &array,
                          const Box &elements) const {
  std::lock_guard lock(mutex);
  auto found = contents.histories.find(array.identity);
  if (found == contents.histories.end())
    return 0;
  return bytesOf(array, found->second.wanted.within(elements).boxes());
}

size_t VersionLog::bytes() const {
  std::lock_guard lock(mutex);
  return held;
}

size_t VersionLog::peakBytes() const {
  std::lock_guard lock(mutex);
  return peak;
}

} // namespace costate::runtime
