#include "runtime/vulkan/Pool.h"

#include <algorithm>

namespace costate::runtime::vulkan {

Pool::Pool(std::shared_ptr<Session> session, PoolKind kind, size_t blockBytes)
    : session(std::move(session)), kind(kind), blockBytes(blockBytes) {
  if (int type = memoryTypeFor(*this->session, kind); type >= 0)
    heap = this->session->heapOf(static_cast<uint32_t>(type));
}

Pool::~Pool() {
  for (const auto &[address, block] : blocks)
    block.close(*session);
}

Status Pool::addBlock(size_t bytes) {
  Block block;
  if (Status status = block.open(*session, kind, bytes)) {
    block.close(*session);
    return status;
  }
  blocks[block.address] = block;
  if (block.host)
    hosts[block.host] = block.address;
  ranges.add(block.address, bytes);
  return VK_SUCCESS;
}

Status Pool::allocate(size_t bytes, Piece &piece) {
  size_t most = largestBlock(*session, kind);
  // Alignment within the block takes some.
  size_t least = bytes + 2 * Ranges::alignment;
  if (least < bytes || least > most)
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  std::lock_guard lock(mutex);
  auto address = ranges.take(bytes);
  for (size_t block : {std::min(blockBytes, most), least}) {
    if (address)
      break;
    Status status = addBlock(std::max(block, least));
    if (status && block == least)
      return status;
    address = ranges.take(bytes);
  }
  if (!address)
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const Block &block = *blockOf(*address);
  piece = {*address,
           block.host ? block.host + (*address - block.address) : nullptr};
  return VK_SUCCESS;
}

void Pool::release(uint64_t address) {
  std::lock_guard lock(mutex);
  ranges.give(address);
}

const Block *Pool::blockOf(uint64_t address) const {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return nullptr;
  const Block &block = std::prev(after)->second;
  return address - block.address < block.bytes ? &block : nullptr;
}

Place Pool::find(uint64_t address) const {
  std::lock_guard lock(mutex);
  const Block *block = blockOf(address);
  return block ? Place{block->buffer, address - block->address} : Place();
}

uint64_t Pool::addressOf(const std::byte *host) const {
  std::lock_guard lock(mutex);
  auto after = hosts.upper_bound(host);
  if (after == hosts.begin())
    return 0;
  auto [start, address] = *std::prev(after);
  auto offset = static_cast<uint64_t>(host - start);
  return offset < blocks.at(address).bytes ? address + offset : 0;
}

void Pool::trim(const std::function<Status()> &wait) {
  std::vector<Block> unused;
  {
    std::lock_guard lock(mutex);
    while (auto start = ranges.removeFree()) {
      unused.push_back(*blockOf(*start));
      hosts.erase(unused.back().host);
      blocks.erase(unused.back().address);
    }
  }
  (void)wait();
  for (const Block &block : unused)
    block.close(*session);
}

size_t Pool::freeBytes() const {
  std::lock_guard lock(mutex);
  size_t used = 0;
  for (const auto &[address, block] : blocks)
    used += block.bytes;
  size_t free = session->freeBytes(heap);
  if (!session->adapter().tellsBudget)
    free -= std::min(free, used);
  return free + ranges.freeBytes();
}

} // namespace costate::runtime::vulkan
