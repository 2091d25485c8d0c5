#include "runtime/vulkan/Commands.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace costate::runtime::vulkan {

static constexpr size_t chunkBytes = size_t(64) << 10;
/// That are kept for the next commands.
static constexpr size_t keptChunks = 4;

/// Of one copy: the layers of Vulkan compare each with all others.
static constexpr size_t mostRegions = 64;

constexpr VkPipelineStageFlags work =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags writes =
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags accesses =
    writes | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

//===-- Arguments ---------------------------------------------------------===//

void Arguments::releaseFrom(size_t first) {
  for (size_t k = first; k < chunks.size(); ++k)
    pool->release(chunks[k].start.address);
  chunks.resize(std::min(first, chunks.size()));
}

Arguments::~Arguments() { releaseFrom(0); }

void Arguments::clear() {
  current = used = 0;
  room = 0;
  releaseFrom(keptChunks);
}

/// The next chunk that has room; what is left of the one before is lost.
Status Arguments::advance(size_t bytes) {
  while (current < chunks.size() && chunks[current].bytes < bytes)
    ++current;
  if (current == chunks.size()) {
    Chunk made{.bytes = std::max(bytes, chunkBytes)};
    if (Status status = pool->allocate(made.bytes, made.start))
      return status;
    chunks.push_back(made);
  }
  next = chunks[current].start;
  room = chunks[current++].bytes;
  return VK_SUCCESS;
}

Status Arguments::take(size_t bytes, Piece &piece) {
  size_t whole = (bytes + 15) / 16 * 16;
  if (whole > room)
    if (Status status = advance(whole))
      return status;
  piece = next;
  next.address += whole;
  next.host += whole;
  room -= whole;
  used += whole;
  return VK_SUCCESS;
}

//===-- Tables ------------------------------------------------------------===//

Result<std::shared_ptr<const Tables>> Tables::make(Session &session,
                                                   std::shared_ptr<Pool> pool,
                                                   const std::string &bytes) {
  if (bytes.empty())
    return std::shared_ptr<const Tables>();
  Piece piece;
  if (Status status = pool->allocate(bytes.size(), piece))
    return session.failure(status, "load code");
  std::memcpy(piece.host, bytes.data(), bytes.size());
  return std::make_shared<const Tables>(std::move(pool), piece.address);
}

//===-- Commands ----------------------------------------------------------===//

Commands::~Commands() {
  if (commandPool)
    session->api().vkDestroyCommandPool(session->device(), commandPool,
                                        nullptr);
}

Status Commands::open() {
  const Api &api = session->api();
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.flags = isKept ? 0 : VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  info.queueFamilyIndex = session->adapter().queueFamily;
  if (Status status = api.vkCreateCommandPool(session->device(), &info, nullptr,
                                              &commandPool))
    return status;
  VkCommandBufferAllocateInfo wanted{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  wanted.commandPool = commandPool;
  wanted.level = isKept ? VK_COMMAND_BUFFER_LEVEL_SECONDARY
                        : VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  wanted.commandBufferCount = 1;
  return api.vkAllocateCommandBuffers(session->device(), &wanted, &buffer);
}

Status Commands::begin() {
  if (!buffer)
    if (Status status = open())
      return status;
  VkCommandBufferInheritanceInfo nothing{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = isKept ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
                      : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  info.pInheritanceInfo = isKept ? &nothing : nullptr;
  return session->api().vkBeginCommandBuffer(buffer, &info);
}

Status Commands::end() {
  if (!isKept)
    barrier(VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  return session->api().vkEndCommandBuffer(buffer);
}

void Commands::clear() {
  uses.clear();
  arguments.clear();
  recorded = 0;
  session->api().vkResetCommandPool(session->device(), commandPool, 0);
}

void Commands::barrier(VkPipelineStageFlags after, VkAccessFlags seen) {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = writes;
  memory.dstAccessMask = seen;
  session->api().vkCmdPipelineBarrier(buffer, work, after, 0, 1, &memory, 0,
                                      nullptr, 0, nullptr);
}

void Commands::wait() { barrier(work, accesses); }

Status Commands::launch(const std::shared_ptr<Pipeline> &pipeline,
                        int64_t blocks, std::span<const uint64_t> words) {
  const Api &api = session->api();
  Piece place;
  if (Status status =
          arguments.take(std::max<size_t>(words.size_bytes(), 8), place))
    return status;
  std::ranges::copy(words, reinterpret_cast<uint64_t *>(place.host));
  api.vkCmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE,
                        pipeline->handle);
  uint64_t addresses[] = {place.address, pipeline->loopCell,
                          pipeline->tables ? pipeline->tables->address : 0};
  api.vkCmdPushConstants(buffer, session->layout(), VK_SHADER_STAGE_COMPUTE_BIT,
                         0, sizeof addresses, addresses);
  api.vkCmdDispatch(buffer, static_cast<uint32_t>(blocks), 1, 1);
  uses.push_back(pipeline);
  ++recorded;
  return VK_SUCCESS;
}

void Commands::copy(Place to, Place from, const CopyShape &shape) {
  std::array<VkBufferCopy, mostRegions> regions;
  for (size_t row = 0; row < shape.rows;) {
    uint32_t count = 0;
    for (; count < mostRegions && row < shape.rows; ++row)
      regions[count++] = {from.offset + row * shape.fromPitch,
                          to.offset + row * shape.toPitch, shape.bytes};
    session->api().vkCmdCopyBuffer(buffer, from.buffer, to.buffer, count,
                                   regions.data());
    ++recorded;
  }
}

Status Commands::write(Place to, const void *from, size_t bytes) {
  Piece place;
  if (Status status = arguments.take(bytes, place))
    return status;
  std::memcpy(place.host, from, bytes);
  copy(to, arguments.placeOf(place), bytes);
  return VK_SUCCESS;
}

void Commands::fill(Place to, size_t bytes, uint32_t word) {
  session->api().vkCmdFillBuffer(buffer, to.buffer, to.offset, bytes, word);
  ++recorded;
}

void Commands::run(std::shared_ptr<Commands> others) {
  session->api().vkCmdExecuteCommands(buffer, 1, &others->buffer);
  recorded += others->recorded;
  uses.push_back(std::move(others));
}

} // namespace costate::runtime::vulkan
