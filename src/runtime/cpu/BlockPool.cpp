#include "runtime/cpu/BlockPool.h"

#include "runtime/cpu/Pages.h"

#include <algorithm>
#include <cstdlib>

namespace costate::runtime::cpu {

/// From this size on, blocks are pages, and are kept. The heap keeps smaller
/// ones. The address sanitizer watches only memory from the heap.
#ifdef COSTATE_SANITIZE
static constexpr size_t keptFrom = SIZE_MAX;
#else
static constexpr size_t keptFrom = 1u << 16;
#endif
static constexpr size_t alignment = 64;

/// The part of the limit that may be idle.
static constexpr size_t idlePart = 8;

BlockPool::BlockPool(MemoryBudget &budget) : budget(budget) {
  budget.watch(*this);
}

BlockPool::~BlockPool() { shrink(0); }

size_t BlockPool::rounded(size_t bytes) {
  if (bytes >= keptFrom)
    return wholePages(bytes);
  return bytes > SIZE_MAX - alignment
             ? 0
             : (bytes + alignment - 1) / alignment * alignment;
}

static std::byte *allocate(size_t taken) {
  return taken < keptFrom
             ? static_cast<std::byte *>(std::aligned_alloc(alignment, taken))
             : mapPages(taken);
}

std::byte *BlockPool::take(size_t bytes) {
  const size_t taken = rounded(bytes);
  if (taken == 0)
    return nullptr;
  // Before the budget is asked, which would drop what fits.
  std::byte *block = takeIdle(taken);
  if (!budget.take(taken)) {
    keep(block, taken);
    return nullptr;
  }
  if (!block && !(block = allocate(taken))) {
    shrink(0);
    block = allocate(taken);
  }
  if (!block)
    budget.give(taken);
  return block;
}

void BlockPool::put(std::byte *block, size_t bytes) {
  const size_t taken = rounded(bytes);
  budget.give(taken);
  if (taken < keptFrom)
    return std::free(block);
  const size_t most = std::min(budget.limit() / idlePart, budget.left());
  if (taken > most)
    return unmapPages(block, taken);
  keep(block, taken);
  shrink(most);
}

std::byte *BlockPool::takeIdle(size_t bytes) {
  std::lock_guard lock(mutex);
  auto found = blocks.find(bytes);
  if (found == blocks.end())
    return nullptr;
  std::byte *block = found->second.back().block;
  found->second.pop_back();
  if (found->second.empty())
    blocks.erase(found);
  idle -= bytes;
  return block;
}

void BlockPool::keep(std::byte *block, size_t bytes) {
  if (!block)
    return;
  std::lock_guard lock(mutex);
  blocks[bytes].push_back({block, ++age});
  idle += bytes;
}

void BlockPool::shrink(size_t most) {
  if (idle <= most)
    return;
  std::lock_guard lock(mutex);
  while (idle > most) {
    auto oldest = std::ranges::min_element(blocks, {}, [](const auto &ofSize) {
      return ofSize.second.front().age;
    });
    unmapPages(oldest->second.front().block, oldest->first);
    oldest->second.pop_front();
    idle -= oldest->first;
    if (oldest->second.empty())
      blocks.erase(oldest);
  }
}

} // namespace costate::runtime::cpu
