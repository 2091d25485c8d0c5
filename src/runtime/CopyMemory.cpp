#include "runtime/CopyMemory.h"

#include <algorithm>

namespace costate::runtime {

static constexpr size_t alignment = 16;
static constexpr size_t smallestBlock = 1u << 10, largestBlock = 1u << 16;

CopyMemory::CopyMemory(std::shared_ptr<Device> device)
    : device(std::move(device)) {}

CopyMemory::~CopyMemory() {
  for (Buffer block : blocks)
    device->release(block);
}

Result<Buffer> CopyMemory::allocate(size_t bytes) {
  Result<Buffer> block = device->allocate(bytes);
  if (block)
    blocks.push_back(*block);
  return block;
}

Result<Buffer> CopyMemory::take(size_t bytes) {
  std::lock_guard lock(mutex);
  size_t taken = (bytes + alignment - 1) / alignment * alignment;
  // Blocks grow with what is needed, so that little of it is spare.
  size_t size = std::min(smallestBlock << std::min<size_t>(blocks.size(), 6),
                         largestBlock);
  if (taken > rest.bytes && taken <= size / 4)
    if (Result<Buffer> block = allocate(size))
      rest = *block;
  if (taken > rest.bytes)
    return allocate(bytes);
  Buffer buffer{rest.address, bytes};
  rest = {rest.address + taken, rest.bytes - taken};
  return buffer;
}

void CopyMemory::reuse() {
  std::lock_guard lock(mutex);
  if (blocks.empty())
    return;
  std::ranges::swap(*std::ranges::max_element(blocks, {}, &Buffer::bytes),
                    blocks.front());
  for (; blocks.size() > 1; blocks.pop_back())
    device->release(blocks.back());
  rest = blocks.front();
}

} // namespace costate::runtime
