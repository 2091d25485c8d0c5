#include "runtime/CopyMemory.h"

#include <algorithm>
#include <bit>

namespace costate::runtime {

static constexpr size_t least = 16, line = 64; // of alignment
static constexpr size_t smallestBlock = 1u << 10, largestBlock = 2u << 20;

CopyMemory::CopyMemory(std::shared_ptr<Device> device)
    : device(std::move(device)) {}

CopyMemory::~CopyMemory() {
  for (Buffer block : blocks)
    device->giveBack(block);
}

Result<Buffer> CopyMemory::allocate(size_t bytes) {
  Result<Buffer> block = device->borrow(bytes);
  if (block) {
    blocks.push_back(*block);
    total += bytes;
  }
  return block;
}

Result<Buffer> CopyMemory::take(size_t bytes) {
  std::lock_guard lock(mutex);
  const size_t alignment = bytes < line ? least : line;
  const size_t padding = -reinterpret_cast<uintptr_t>(rest.address) % alignment;
  size_t taken = padding + bytes;
  // Blocks grow with what is needed, so that little of it is spare.
  size_t size =
      std::clamp(std::bit_floor(total / 2), smallestBlock, largestBlock);
  if (taken > rest.bytes && bytes <= size / 4)
    if (Result<Buffer> block = allocate(size)) {
      rest = *block;
      taken = bytes;
    }
  if (taken > rest.bytes)
    return allocate(bytes);
  Buffer buffer{rest.address + taken - bytes, bytes};
  rest = {rest.address + taken, rest.bytes - taken};
  return buffer;
}

void CopyMemory::reuse() {
  std::lock_guard lock(mutex);
  if (blocks.empty())
    return;
  std::ranges::swap(*std::ranges::max_element(blocks, {}, &Buffer::bytes),
                    blocks.front());
  total = blocks.front().bytes;
  for (; blocks.size() > 1; blocks.pop_back())
    device->giveBack(blocks.back());
  rest = blocks.front();
}

} // namespace costate::runtime
