#include "runtime/vulkan/Block.h"

#include <algorithm>

namespace costate::runtime::vulkan {
namespace {

Status allocate(const Session &session, size_t bytes, int type,
                std::vector<VkDeviceMemory> &memory) {
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
  info.allocationSize = bytes;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  VkDeviceMemory made = VK_NULL_HANDLE;
  Status status =
      session.api().vkAllocateMemory(session.device(), &info, nullptr, &made);
  if (status == VK_SUCCESS)
    memory.push_back(made);
  return status;
}

/// Gives `buffer` its memory, and waits until it has it.
Status bindSparse(Session &session, VkBuffer buffer,
                  const std::vector<VkSparseMemoryBind> &pieces) {
  const Api &api = session.api();
  VkSparseBufferMemoryBindInfo all{buffer, static_cast<uint32_t>(pieces.size()),
                                   pieces.data()};
  VkBindSparseInfo info{VK_STRUCTURE_TYPE_BIND_SPARSE_INFO};
  info.bufferBindCount = 1;
  info.pBufferBinds = &all;
  VkFenceCreateInfo unsignaled{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  Status status =
      api.vkCreateFence(session.device(), &unsignaled, nullptr, &fence);
  if (status)
    return status;
  status = session.withQueue([&](VkQueue queue) {
    return api.vkQueueBindSparse(queue, 1, &info, fence);
  });
  if (status == VK_SUCCESS)
    status =
        api.vkWaitForFences(session.device(), 1, &fence, VK_TRUE, UINT64_MAX);
  api.vkDestroyFence(session.device(), fence, nullptr);
  return status;
}

Status bindPieces(Session &session, Block &block,
                  const VkMemoryRequirements &needs, int type) {
  size_t most = session.adapter().mostBytes / needs.alignment * needs.alignment;
  std::vector<VkSparseMemoryBind> pieces;
  for (size_t done = 0; done < needs.size; done += pieces.back().size) {
    size_t bytes = std::min<size_t>(needs.size - done, most);
    if (Status status = allocate(session, bytes, type, block.memory))
      return status;
    pieces.push_back({done, bytes, block.memory.back(), 0, 0});
  }
  return bindSparse(session, block.buffer, pieces);
}

Status bindWhole(Session &session, Block &block,
                 const VkMemoryRequirements &needs, int type) {
  if (Status status = allocate(session, needs.size, type, block.memory))
    return status;
  return session.api().vkBindBufferMemory(session.device(), block.buffer,
                                          block.memory.back(), 0);
}

} // namespace

int memoryTypeFor(const Session &session, PoolKind kind, uint32_t allowed) {
  constexpr VkMemoryPropertyFlags
      local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
      cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
      seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
      both = seen | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
      strange = VK_MEMORY_PROPERTY_PROTECTED_BIT |
                VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
  switch (kind) {
  case PoolKind::Device:
    return session.memoryType(allowed, local, 0, seen | strange);
  case PoolKind::Host:
    return session.memoryType(allowed, both, cached, strange);
  case PoolKind::Written:
    return session.memoryType(allowed, both, local, strange);
  }
  return -1;
}

size_t largestBlock(const Session &session, PoolKind kind) {
  const Adapter &adapter = session.adapter();
  return kind == PoolKind::Device
             ? std::max(adapter.mostBytes, adapter.mostSparseBytes)
             : adapter.mostBytes;
}

Status Block::open(Session &session, PoolKind kind, size_t size) {
  const Api &api = session.api();
  bytes = size;
  bool isSparse = bytes > session.adapter().mostBytes;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.flags = isSparse ? VK_BUFFER_CREATE_SPARSE_BINDING_BIT : 0;
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (Status status =
          api.vkCreateBuffer(session.device(), &info, nullptr, &buffer))
    return status;
  VkMemoryRequirements needs;
  api.vkGetBufferMemoryRequirements(session.device(), buffer, &needs);
  int type = memoryTypeFor(session, kind, needs.memoryTypeBits);
  if (type < 0)
    return VK_ERROR_FEATURE_NOT_PRESENT;
  Status status = isSparse ? bindPieces(session, *this, needs, type)
                           : bindWhole(session, *this, needs, type);
  if (status && kind == PoolKind::Written) // there may be little of the best
    status =
        bindWhole(session, *this, needs,
                  memoryTypeFor(session, PoolKind::Host, needs.memoryTypeBits));
  if (status)
    return status;
  VkBufferDeviceAddressInfo where{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  where.buffer = buffer;
  address = api.vkGetBufferDeviceAddress(session.device(), &where);
  if (kind == PoolKind::Device)
    return VK_SUCCESS;
  void *mapped = nullptr;
  status = api.vkMapMemory(session.device(), memory.back(), 0, VK_WHOLE_SIZE, 0,
                           &mapped);
  host = static_cast<std::byte *>(mapped);
  return status;
}

void Block::close(const Session &session) const {
  const Api &api = session.api();
  if (buffer)
    api.vkDestroyBuffer(session.device(), buffer, nullptr);
  for (VkDeviceMemory piece : memory)
    api.vkFreeMemory(session.device(), piece, nullptr);
}

} // namespace costate::runtime::vulkan
