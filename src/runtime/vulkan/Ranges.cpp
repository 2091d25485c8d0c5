#include "runtime/vulkan/Ranges.h"

#include <iterator>

namespace costate::runtime::vulkan {

void Ranges::addFree(uint64_t start, size_t bytes) {
  free[start] = bytes;
  bySize.emplace(bytes, start);
  freeTotal += bytes;
}

void Ranges::eraseFree(Free::iterator range) {
  bySize.erase({range->second, range->first});
  freeTotal -= range->second;
  free.erase(range);
}

void Ranges::add(uint64_t block, size_t bytes) {
  uint64_t start = (block + alignment - 1) / alignment * alignment;
  uint64_t end = (block + bytes) / alignment * alignment;
  if (start >= end)
    return;
  starts[start] = end - start;
  addFree(start, end - start);
}

std::optional<uint64_t> Ranges::take(size_t bytes) {
  size_t whole = (bytes + alignment - 1) / alignment * alignment;
  if (whole < bytes)
    return std::nullopt;
  auto found = bySize.lower_bound({whole, 0});
  if (found == bySize.end())
    return std::nullopt;
  auto [size, start] = *found;
  eraseFree(free.find(start));
  if (size > whole)
    addFree(start + whole, size - whole);
  taken[start] = whole;
  return start;
}

bool Ranges::give(uint64_t place) {
  auto found = taken.find(place);
  if (found == taken.end())
    return false;
  uint64_t start = place;
  size_t bytes = found->second;
  taken.erase(found);
  auto next = free.lower_bound(start);
  bool joinsNext = next != free.end() && next->first == start + bytes &&
                   !starts.contains(next->first);
  if (joinsNext) {
    bytes += next->second;
    auto joined = next++;
    eraseFree(joined);
  }
  if (next != free.begin() && !starts.contains(start)) {
    auto before = std::prev(next);
    if (before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      eraseFree(before);
    }
  }
  addFree(start, bytes);
  return true;
}

std::optional<uint64_t> Ranges::removeFree() {
  for (auto [start, bytes] : starts) {
    auto range = free.find(start);
    if (range == free.end() || range->second != bytes)
      continue;
    eraseFree(range);
    starts.erase(start);
    return start;
  }
  return std::nullopt;
}

} // namespace costate::runtime::vulkan
