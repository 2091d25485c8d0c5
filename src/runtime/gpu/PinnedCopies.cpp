#include "runtime/gpu/PinnedCopies.h"

#include <algorithm>
#include <utility>

namespace costate::runtime::gpu {

/// Of one place.
static constexpr size_t leastBetween = size_t(1) << 20, mostBetween = size_t(16)
                                                                      << 20;
/// Memory of the host that stays for the next user.
static constexpr size_t mostIdle = size_t(512) << 20;

PinnedCopies::PinnedCopies(Memory &memory) : memory(memory), host(memory) {}

PinnedCopies::~PinnedCopies() {
  ForeignWork work;
  side.reset();
  for (Buffer one : between)
    if (one.bytes)
      memory.release(one.address, one.bytes);
}

Result<Buffer> PinnedCopies::borrow(size_t bytes) {
  ForeignWork work;
  std::lock_guard lock(mutex);
  return host.take(bytes);
}

void PinnedCopies::giveBack(Buffer buffer) {
  std::lock_guard lock(mutex);
  host.put(buffer.address);
}

Result<> PinnedCopies::save(Buffer to, std::span<const Rows> from) {
  return transfer(Way::Save, to, from);
}

Result<> PinnedCopies::load(std::span<const Rows> to, Buffer from) {
  return transfer(Way::Load, from, to);
}

void PinnedCopies::trim() {
  if (memory.isCapturing())
    return;
  ForeignWork work;
  std::lock_guard lock(mutex);
  for (size_t place = 0; place < between.size(); ++place)
    (void)release(place);
  host.shrink(mostIdle);
}

/// Parts of `rows` in their order, of at most `most` bytes each.
static std::vector<Rows> divided(std::span<const Rows> rows, size_t most) {
  std::vector<Rows> parts;
  for (const Rows &one : rows) {
    const size_t width = std::min(one.bytes, most);
    const size_t height =
        std::max<size_t>(1, most / std::max<size_t>(1, width));
    for (size_t row = 0; row < one.count; row += height)
      for (size_t at = 0; at < one.bytes; at += width)
        parts.emplace_back(one.address + row * one.pitch + at,
                           std::min(width, one.bytes - at),
                           std::min(height, one.count - row), one.pitch);
  }
  return parts;
}

Result<> PinnedCopies::open() {
  if (std::exchange(isOpen, true))
    return {};
  Result<std::unique_ptr<SideStream>> made = memory.real->openSideStream();
  if (!made)
    return made.error();
  side = std::move(*made);
  return {};
}

/// Small and large pieces share no memory, so that the two ways do not meet.
Result<> PinnedCopies::transfer(Way way, Buffer buffer,
                                std::span<const Rows> rows) {
  ForeignWork work;
  std::lock_guard lock(mutex);
  if (Result<> done = open(); !done)
    return done;
  if (!side || buffer.bytes <= side->smallBytes())
    return straight(way, host.onDevice(buffer.address), rows);
  const size_t most = std::clamp(buffer.bytes, leastBetween, mostBetween);
  const std::vector<Rows> parts = divided(rows, most);
  std::byte *at = buffer.address, *packed = host.onDevice(at);
  Result<> done;
  for (size_t k = 0; done && k < parts.size();) {
    size_t bytes = 0;
    const size_t first = k;
    while (k < parts.size() && bytes + parts[k].size() <= most)
      bytes += parts[k++].size();
    const std::span<const Rows> some(parts.data() + first, k - first);
    const size_t place = std::exchange(next, (next + 1) % between.size());
    done = reserve(place, most) ? through(place, way, at, some, bytes)
                                : straightInOrder(way, packed, some);
    at += bytes;
    packed += bytes;
  }
  return done;
}

/// Among launches. `packed`: where the device finds it.
Result<> PinnedCopies::straight(Way way, std::byte *packed,
                                std::span<const Rows> rows) {
  Result<> done;
  for (const Rows &one : rows) {
    const Rows other(packed, one.bytes, one.count, one.bytes);
    const Rows &to = way == Way::Save ? other : one,
               &from = way == Way::Save ? one : other;
    if (done)
      done =
          memory.driver().copy(to.address, from.address, CopyShape(to, from));
    packed += one.size();
  }
  return done;
}

/// The same after all copies beside launches, and before the next ones.
Result<> PinnedCopies::straightInOrder(Way way, std::byte *packed,
                                       std::span<const Rows> rows) {
  Result<> done;
  for (size_t place = 0; done && place < between.size(); ++place)
    done = side->enter(place);
  if (done)
    done = straight(way, packed, rows);
  for (size_t place = 0; done && place < between.size(); ++place)
    done = side->leave(place);
  return done;
}

Result<> PinnedCopies::through(size_t place, Way way, std::byte *at,
                               std::span<const Rows> rows, size_t bytes) {
  std::byte *middle = between[place].address;
  if (way == Way::Load) {
    Result<> done = side->load(place, middle, at, bytes);
    if (done)
      done = side->enter(place);
    if (done)
      done = straight(way, middle, rows);
    return done ? side->leave(place) : done;
  }
  Result<> done = side->enter(place);
  if (done)
    done = straight(way, middle, rows);
  if (done)
    done = side->leave(place);
  return done ? side->save(place, at, middle, bytes) : done;
}

Result<> PinnedCopies::reserve(size_t place, size_t bytes) {
  if (between[place].bytes >= bytes)
    return {};
  Result<> done = release(place);
  if (!done)
    return done;
  Result<std::byte *> made = memory.allocate(bytes);
  if (!made)
    return made.error();
  between[place] = {*made, bytes};
  return side->leave(place);
}

Result<> PinnedCopies::release(size_t place) {
  if (!between[place].bytes)
    return {};
  Result<> done = side->enter(place);
  if (done) {
    memory.release(between[place].address, between[place].bytes);
    between[place] = {};
  }
  return done;
}

} // namespace costate::runtime::gpu
