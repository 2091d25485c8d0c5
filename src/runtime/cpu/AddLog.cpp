#include "runtime/cpu/AddLog.h"

#include "runtime/cpu/Pages.h"

#include <bit>
#include <cmath>

namespace costate::runtime::cpu {

static constexpr size_t slabBytes = 64u << 10;

AddLog::~AddLog() {
  for (std::byte *slab : slabs)
    unmapPages(slab, slabBytes);
  budget.give(slabs.size() * slabBytes);
}

void AddLog::beginWave() {
  slabsTaken = 0;
  firstNotFinite = 0;
  for (Chunk &chunk : log)
    chunk.fill(List());
}

bool AddLog::refill(Writer &writer) noexcept {
  std::lock_guard lock(mutex);
  if (slabsTaken == slabs.size()) {
    if (!budget.take(slabBytes))
      return false;
    std::byte *slab = mapPages(slabBytes);
    if (!slab) {
      budget.give(slabBytes);
      return false;
    }
    slabs.push_back(slab);
  }
  writer.next = reinterpret_cast<Block *>(slabs[slabsTaken++]);
  writer.end = writer.next + slabBytes / sizeof(Block);
  return true;
}

/// Addresses of one cache line share a partition: no false sharing.
static int partitionOf(uintptr_t address) {
  return static_cast<int>((address >> 6) * 0x9e3779b97f4a7c15u >> 58);
}

bool AddLog::append(Writer &writer, uintptr_t address, uint64_t bits) {
  List &list = (*writer.chunk)[partitionOf(address)];
  Block *last = list.last;
  if (!last || last->count == std::size(last->additions)) {
    if (writer.next == writer.end && !refill(writer))
      return false;
    Block *block = writer.next++;
    block->next = nullptr;
    block->count = 0;
    (last ? last->next : list.first) = block;
    list.last = last = block;
  }
  last->additions[last->count++] = {address, bits};
  return true;
}

bool AddLog::append(Writer &writer, float *address, float value) {
  return append(writer, reinterpret_cast<uintptr_t>(address) | 1,
                std::bit_cast<uint32_t>(value));
}

bool AddLog::append(Writer &writer, double *address, double value) {
  return append(writer, reinterpret_cast<uintptr_t>(address),
                std::bit_cast<uint64_t>(value));
}

bool AddLog::append(Writer &writer, f16 *address, float value) {
  return append(writer, reinterpret_cast<uintptr_t>(address) | 1,
                std::bit_cast<uint32_t>(value) | uint64_t(1) << 32);
}

void AddLog::noteNotFinite(uintptr_t address) {
  uintptr_t seen = firstNotFinite.load();
  while ((seen == 0 || address < seen) &&
         !firstNotFinite.compare_exchange_weak(seen, address)) {
  }
}

template <class T> static void add(uintptr_t address, T value) {
  T &element = *reinterpret_cast<T *>(address);
  element = T(element + value);
}

/// Whether finite numbers have given inf or NaN.
template <class T> static bool addWatched(uintptr_t address, T value) {
  T &element = *reinterpret_cast<T *>(address);
  T before = element;
  element = T(before + value);
  auto isFinite = [](auto number) { return std::isfinite(+number); };
  return !isFinite(element) && isFinite(before) && isFinite(value);
}

template <class Visit>
void AddLog::forEach(int partition, const Visit &visit) const {
  for (const Chunk &chunk : log)
    for (const Block *block = chunk[partition].first; block;
         block = block->next)
      for (uint64_t i = 0; i < block->count; ++i) {
        auto [address, bits] = block->additions[i];
        float narrow = std::bit_cast<float>(static_cast<uint32_t>(bits));
        if (bits >> 32 == 1 && (address & 1))
          visit(address - 1, f16(narrow));
        else if (address & 1)
          visit(address - 1, narrow);
        else
          visit(address, std::bit_cast<double>(bits));
      }
}

void AddLog::apply(int partition) {
  forEach(partition,
          [](uintptr_t address, auto value) { add(address, value); });
}

void AddLog::applyWatched(int partition) {
  forEach(partition, [this]<class T>(uintptr_t address, T value) {
    if (addWatched(address, value))
      noteNotFinite(address | (sizeof(T) == sizeof(float)) |
                    (sizeof(T) == sizeof(f16) ? ofHalf : 0));
  });
}

} // namespace costate::runtime::cpu
