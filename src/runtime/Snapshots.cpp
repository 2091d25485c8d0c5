#include "runtime/Snapshots.h"

#include "runtime/ArrayRows.h"

#include <algorithm>
#include <utility>

namespace costate::runtime {

static std::string describe(const ArrayStorage &array) {
  return "an array of " + contentsText(array);
}

Snapshots::~Snapshots() {
  endUse();
  clear();
}

/// Not to be called with the lock: an array is locked before its watchers.
void Snapshots::watch(Known &known) {
  known.array->watch(*this, [&] {
    std::lock_guard lock(mutex);
    return !std::exchange(known.isWatching, true);
  });
}

/// What others may write at any time is copied at once.
static void keepFromStrangers(ArrayStorage &array) {
  if (array.strangers == 0)
    return;
  ArrayWrite write{array, Box::whole(array.extents),
                   [] { return std::string("others who share its memory"); }};
  write.certain = true;
  (void)array.announce(write);
}

void Snapshots::add(const std::shared_ptr<ArrayStorage> &array) {
  Known *known;
  {
    std::lock_guard lock(mutex);
    known = &all[array->identity];
    if (known->array)
      return;
    known->array = array;
  }
  watch(*known);
  keepFromStrangers(*array);
}

void Snapshots::guard(const ArrayStorage &array, const Box &elements) {
  std::lock_guard lock(mutex);
  all.at(array.identity).guarded.add(elements);
}

bool Snapshots::wouldBegin(const ArrayStorage &array,
                           const Box &elements) const {
  std::lock_guard lock(mutex);
  auto known = all.find(array.identity);
  return snapshots.empty() && known != all.end() &&
         known->second.guarded.meets(elements);
}

void Snapshots::take() {
  {
    std::lock_guard lock(mutex);
    snapshots.emplace_back();
  }
  for (auto &[identity, known] : all) {
    watch(known);
    keepFromStrangers(*known.array);
  }
}

/// The elements of `box` that are not in `region`.
static std::vector<Box> outside(const Region &region, const Box &box) {
  if (!region.meets(box))
    return {box};
  Region open(box);
  for (const Box &known : region.within(box).boxes())
    open.remove(known);
  return open.boxes();
}

Result<Snapshots::Piece> Snapshots::keep(const ArrayWrite &write,
                                         std::vector<Box> open) const {
  const ArrayStorage &array = write.array;
  Piece piece{std::move(open), nullptr, ""};
  size_t bytes = bytesOf(array, piece.elements);
  Result<std::shared_ptr<KeptMemory>> values =
      write.past ? Failure{ErrorCode::CannotReplay, ""}
                 : KeptMemory::make(place, array, bytes);
  if (!values && (write.past || write.certain)) {
    piece.writer = write.writer();
    return piece;
  }
  if (!values)
    return Failure{values.error().code,
                   write.writer() + " overwrites values of " + describe(array) +
                       " that a `Tape` needs to run launches again, and there "
                       "is no memory to keep them: " +
                       values.error().text +
                       "; nothing has been written; take fewer snapshots, or "
                       "give the `Tape` a smaller budget"};
  piece.values = *values;
  Result<> copied = piece.values->fill(array, piece.elements);
  if (!copied)
    return copied.error();
  return piece;
}

void Snapshots::count(Known &known, Snapshot &snapshot, const Piece &piece) {
  const ArrayStorage &array = *known.array;
  size_t bytes = piece.values ? piece.values->bytes() : 0;
  snapshot.bytes += bytes;
  held += bytes;
  peak = std::max(peak, held);
  largest = std::max(largest, snapshot.bytes);
  size_t first = 0;
  for (const Box &box : piece.elements) {
    first += bytesOf(array, outside(known.overwritten, box));
    known.overwritten.add(box);
  }
  overwritten += first;
  merged += first ? bytes : 0;
}

Result<bool> Snapshots::beforeWrite(const ArrayWrite &write) {
  std::lock_guard lock(mutex);
  auto found = all.find(write.array.identity);
  if (found == all.end())
    return false;
  Known &known = found->second;
  if (snapshots.empty() && !known.guarded.meets(write.elements))
    return true;
  if (write.temporary)
    return true;
  if (snapshots.empty())
    snapshots.emplace_back();
  Snapshot &last = snapshots.back();
  Part &part = last.parts[write.array.identity];
  if (std::vector<Box> open = outside(part.region, write.elements);
      !open.empty() && !write.elements.empty()) {
    Result<Piece> piece = keep(write, std::move(open));
    if (!piece)
      return piece.error();
    count(known, last, *piece);
    for (const Box &box : piece->elements)
      part.region.add(box);
    part.pieces.insert(part.pieces.begin(), std::move(*piece));
  }
  const bool isUsed = user != std::thread::id();
  known.isWatching = isUsed || part.region.size() < write.array.size;
  return known.isWatching;
}

Result<> Snapshots::beforeRead(const ArrayStorage &array,
                               const std::function<std::string()> &reader) {
  std::lock_guard lock(mutex);
  bool isForeign =
      user != std::thread::id() && user != std::this_thread::get_id();
  if (!isForeign || !all.contains(array.identity))
    return {};
  return Failure{
      ErrorCode::BadArgument,
      reader() + " reads " + describe(array) +
          ", which holds old values while `backward` of a `Tape` runs "
          "on another thread; wait until that has returned"};
}

void Snapshots::beginUse() {
  std::vector<Known *> known;
  {
    std::lock_guard lock(mutex);
    user = std::this_thread::get_id();
    for (auto &[identity, one] : all)
      if (!one.overwritten.empty())
        known.push_back(&one);
  }
  for (Known *one : known) {
    watch(*one);
    one->refusesReads = true;
    ++one->array->readRefusers;
  }
}

void Snapshots::endUse() {
  std::lock_guard lock(mutex);
  user = std::thread::id();
  for (auto &[identity, known] : all)
    known.array->readRefusers -= std::exchange(known.refusesReads, false);
}

Result<> Snapshots::restore(const ArrayStorage &array, const Piece &piece) {
  if (!piece.values)
    return Failure{ErrorCode::CannotReplay,
                   "launches that use " + describe(array) +
                       " cannot run again: it has been overwritten by " +
                       piece.writer +
                       ", when no copy could be kept; copy the array into one "
                       "of its own memory, or use a `Tape` without snapshots"};
  for (const Box &box : piece.elements) {
    ArrayWrite write{*all.at(array.identity).array, box,
                     [] { return std::string("`backward` of a `Tape`"); }};
    if (Result<> allowed = write.array.announce(write, this); !allowed)
      return allowed;
  }
  return piece.values->putBack(array, piece.elements);
}

Result<> Snapshots::restore() { return restore(snapshots.back()); }

Result<> Snapshots::restoreFirst() {
  Result<> done;
  for (size_t k = snapshots.size(); done && k-- > 0;)
    done = restore(snapshots[k]);
  return done;
}

Result<> Snapshots::restore(const Snapshot &snapshot) {
  for (const auto &[identity, part] : snapshot.parts)
    for (const Piece &piece : part.pieces)
      if (Result<> done = restore(*all.at(identity).array, piece); !done)
        return done;
  return {};
}

/// What `from` has of elements that `into` has too is from a later time.
void Snapshots::merge(Snapshot &into, Snapshot &from) {
  for (auto &[identity, part] : from.parts) {
    Part &earlier = into.parts[identity];
    auto isOpen = [&](const Box &box) {
      return !outside(earlier.region, box).empty();
    };
    std::vector<Piece> kept;
    for (Piece &piece : part.pieces) {
      size_t bytes = piece.values ? piece.values->bytes() : 0;
      if (std::ranges::any_of(piece.elements, isOpen))
        into.bytes += bytes, kept.push_back(std::move(piece));
      else
        held -= bytes;
    }
    for (const Piece &piece : kept)
      for (const Box &box : piece.elements)
        earlier.region.add(box);
    earlier.pieces.insert(earlier.pieces.begin(),
                          std::make_move_iterator(kept.begin()),
                          std::make_move_iterator(kept.end()));
  }
  largest = std::max(largest, into.bytes);
}

void Snapshots::drop(size_t position) {
  std::lock_guard lock(mutex);
  if (position > 0)
    merge(snapshots[position - 1], snapshots[position]);
  else
    held -= snapshots.front().bytes;
  snapshots.erase(snapshots.begin() + static_cast<long>(position));
}

void Snapshots::clear() {
  std::map<uint64_t, Known> gone;
  std::vector<Snapshot> dropped;
  {
    std::lock_guard lock(mutex);
    std::swap(gone, all);
    std::swap(dropped, snapshots);
    held = peak = largest = overwritten = merged = 0;
  }
  dropped.clear();
  for (auto &[identity, known] : gone) {
    if (known.isWatching)
      known.array->unwatch(*this);
    KeptMemory::trim(place, *known.array->device);
  }
}

size_t Snapshots::bytes() const {
  std::lock_guard lock(mutex);
  return held;
}

size_t Snapshots::peakBytes() const {
  std::lock_guard lock(mutex);
  return peak;
}

size_t Snapshots::largestBytes() const {
  std::lock_guard lock(mutex);
  return largest;
}

size_t Snapshots::overwrittenBytes() const {
  std::lock_guard lock(mutex);
  return overwritten;
}

size_t Snapshots::mergedBytes() const {
  std::lock_guard lock(mutex);
  return merged;
}

size_t Snapshots::costOf(const ArrayStorage &array, const Box &elements) const {
  std::lock_guard lock(mutex);
  auto known = all.find(array.identity);
  if (known == all.end() || snapshots.empty())
    return 0;
  const auto &parts = snapshots.back().parts;
  auto part = parts.find(array.identity);
  const Region none;
  return bytesOf(array,
                 outside(part == parts.end() ? none : part->second.region,
                         elements)) +
         bytesOf(array, outside(known->second.overwritten, elements));
}

std::vector<std::shared_ptr<ArrayStorage>> Snapshots::arrays() const {
  std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<ArrayStorage>> arrays;
  for (const auto &[identity, known] : all)
    arrays.push_back(known.array);
  return arrays;
}

bool Snapshots::areElsewhere() const {
  std::lock_guard lock(mutex);
  return std::ranges::any_of(all, [&](const auto &known) {
    return KeptMemory::isElsewhere(place, *known.second.array->device);
  });
}

} // namespace costate::runtime
