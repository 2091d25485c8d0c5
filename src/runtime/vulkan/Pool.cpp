#include "runtime/vulkan/Pool.h"

#include <algorithm>

namespace costate::runtime::vulkan {

Pool::Pool(std::shared_ptr<Session> session, PoolKind kind, size_t blockBytes)
    : session(std::move(session)), kind(kind), blockBytes(blockBytes) {
  if (int type = chooseType(~0u); type >= 0)
    heap = this->session->heapOf(static_cast<uint32_t>(type));
}

Pool::~Pool() {
  for (const auto &[address, block] : blocks)
    destroy(block);
}

void Pool::destroy(const Block &block) const {
  const Api &api = session->api();
  if (block.buffer)
    api.vkDestroyBuffer(session->device(), block.buffer, nullptr);
  if (block.memory)
    api.vkFreeMemory(session->device(), block.memory, nullptr);
}

Status Pool::makeBuffer(Block &block) const {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = block.bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  return session->api().vkCreateBuffer(session->device(), &info, nullptr,
                                       &block.buffer);
}

int Pool::chooseType(uint32_t allowed) const {
  constexpr VkMemoryPropertyFlags
      local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
      cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
      seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
      both = seen | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
      strange = VK_MEMORY_PROPERTY_PROTECTED_BIT |
                VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
  switch (kind) {
  case PoolKind::Device:
    return session->memoryType(allowed, local, 0, seen | strange);
  case PoolKind::Host:
    return session->memoryType(allowed, both, cached, strange);
  case PoolKind::Written:
    return session->memoryType(allowed, both, local, strange);
  }
  return -1;
}

Status Pool::bindMemory(Block &block) const {
  const Api &api = session->api();
  VkMemoryRequirements needs;
  api.vkGetBufferMemoryRequirements(session->device(), block.buffer, &needs);
  int type = chooseType(needs.memoryTypeBits);
  if (type < 0)
    return VK_ERROR_FEATURE_NOT_PRESENT;
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
  info.allocationSize = needs.size;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  if (Status status = api.vkAllocateMemory(session->device(), &info, nullptr,
                                           &block.memory))
    return status;
  if (Status status = api.vkBindBufferMemory(session->device(), block.buffer,
                                             block.memory, 0))
    return status;
  VkBufferDeviceAddressInfo where{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  where.buffer = block.buffer;
  block.address = api.vkGetBufferDeviceAddress(session->device(), &where);
  if (kind == PoolKind::Device)
    return VK_SUCCESS;
  void *mapped = nullptr;
  Status status = api.vkMapMemory(session->device(), block.memory, 0,
                                  VK_WHOLE_SIZE, 0, &mapped);
  block.host = static_cast<std::byte *>(mapped);
  return status;
}

Status Pool::addBlock(size_t bytes) {
  Block block;
  block.bytes = bytes;
  Status status = makeBuffer(block);
  if (status == VK_SUCCESS)
    status = bindMemory(block);
  if (status) {
    destroy(block);
    return status;
  }
  blocks[block.address] = block;
  if (block.host)
    hosts[block.host] = block.address;
  ranges.add(block.address, bytes);
  return status;
}

Status Pool::allocate(size_t bytes, Piece &piece) {
  const Adapter &adapter = session->adapter();
  // Alignment within the block takes some.
  size_t least = bytes + 2 * Ranges::alignment;
  if (least < bytes || least > adapter.mostBytes)
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  std::lock_guard lock(mutex);
  auto address = ranges.take(bytes);
  for (size_t block : {std::min(blockBytes, adapter.mostBytes), least}) {
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

const Pool::Block *Pool::blockOf(uint64_t address) const {
  auto behind = blocks.upper_bound(address);
  if (behind == blocks.begin())
    return nullptr;
  const Block &block = std::prev(behind)->second;
  return address - block.address < block.bytes ? &block : nullptr;
}

Place Pool::find(uint64_t address) const {
  std::lock_guard lock(mutex);
  const Block *block = blockOf(address);
  return block ? Place{block->buffer, address - block->address} : Place();
}

uint64_t Pool::addressOf(const std::byte *host) const {
  std::lock_guard lock(mutex);
  auto behind = hosts.upper_bound(host);
  if (behind == hosts.begin())
    return 0;
  auto [start, address] = *std::prev(behind);
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
    destroy(block);
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
