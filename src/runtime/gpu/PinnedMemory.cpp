#include "runtime/gpu/PinnedMemory.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace costate::runtime::gpu {

static constexpr size_t smallest = 64, page = 4096;
static constexpr size_t blockBytes = size_t(1) << 20;

PinnedMemory::~PinnedMemory() {
  for (auto &[address, piece] : pieces)
    if (piece.isBlock)
      memory.driver().releaseHost(const_cast<std::byte *>(address));
  for (std::byte *block : blocks)
    memory.driver().releaseHost(block);
}

static size_t rounded(size_t bytes) {
  return bytes <= PinnedMemory::smallBytes
             ? std::bit_ceil(std::max(bytes, smallest))
             : (bytes + page - 1) / page * page;
}

Result<Buffer> PinnedMemory::take(size_t bytes) {
  const size_t size = rounded(bytes);
  const size_t most = bytes <= smallBytes ? size : 2 * size;
  auto found = idle.lower_bound(size);
  if (found != idle.end() && found->first <= most) {
    std::byte *address = found->second;
    idle.erase(found);
    return Buffer{address, bytes};
  }
  Result<std::byte *> made = bytes <= smallBytes ? makeSmall(size) : make(size);
  if (!made)
    return made.error();
  return Buffer{*made, bytes};
}

Result<std::byte *> PinnedMemory::make(size_t bytes) {
  Result<std::byte *> made = memory.driver().allocateHost(bytes);
  if (made)
    pieces[*made] = {bytes, memory.driver().onDevice(*made), true};
  return made;
}

/// One of a block; the others are idle.
Result<std::byte *> PinnedMemory::makeSmall(size_t bytes) {
  Result<std::byte *> block = memory.driver().allocateHost(blockBytes);
  if (!block)
    return block;
  blocks.push_back(*block);
  std::byte *onDevice = memory.driver().onDevice(*block);
  for (size_t at = 0; at < blockBytes; at += bytes) {
    pieces[*block + at] = {bytes, onDevice + at, false};
    if (at > 0)
      idle.emplace(bytes, *block + at);
  }
  return block;
}

void PinnedMemory::put(const std::byte *address) {
  idle.emplace(pieces.at(address).bytes, const_cast<std::byte *>(address));
}

std::byte *PinnedMemory::onDevice(const std::byte *address) const {
  return pieces.at(address).onDevice;
}

void PinnedMemory::shrink(size_t most) {
  size_t sum = 0;
  for (auto &[bytes, address] : idle)
    sum += bytes > smallBytes ? bytes : 0;
  while (sum > most) {
    auto largest = std::prev(idle.end());
    memory.driver().releaseHost(largest->second);
    pieces.erase(largest->second);
    sum -= largest->first;
    idle.erase(largest);
  }
}

} // namespace costate::runtime::gpu
