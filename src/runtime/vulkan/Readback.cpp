#include "runtime/vulkan/Readback.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace costate::runtime::vulkan {

static constexpr size_t smallBytes = size_t(64) << 10;
/// A large copy goes through two of these alternately.
static constexpr size_t pieceBytes = size_t(4) << 20;

Readback::~Readback() {
  for (const Copy &copy : idle)
    core->host->release(copy.memory.address);
}

Status Readback::take(Copy &copy, size_t bytes) {
  size_t room = bytes <= smallBytes ? smallBytes : pieceBytes;
  std::lock_guard lock(mutex);
  auto found = std::ranges::find(idle, room, &Copy::room);
  if (found != idle.end()) {
    copy = *found;
    idle.erase(found);
    return VK_SUCCESS;
  }
  Status status = core->host->allocate(room, copy.memory);
  if (status == VK_SUCCESS)
    copy.room = room;
  return status;
}

void Readback::put(const Copy &copy) {
  std::lock_guard lock(mutex);
  if (copy.room)
    idle.push_back({copy.memory, copy.room});
}

Status Readback::start(Copy &copy, std::byte *to, const std::byte *from,
                       size_t bytes) {
  if (!copy.room)
    if (Status status = take(copy, bytes))
      return status;
  Place here = core->host->find(copy.memory.address);
  Place there = core->placeOf(from);
  Status status = core->stream->record([&](Commands &commands) {
    commands.copy(here, there, bytes);
    return VK_SUCCESS;
  });
  if (status)
    return status;
  copy.done = core->stream->now();
  copy.to = to;
  copy.bytes = bytes;
  return status;
}

Status Readback::finish(Copy &copy) {
  if (!copy.to)
    return VK_SUCCESS;
  if (Status status = core->stream->waitFor(copy.done))
    return status;
  std::memcpy(copy.to, copy.memory.host, copy.bytes);
  copy.to = nullptr;
  return VK_SUCCESS;
}

Status Readback::download(void *to, const std::byte *from, size_t bytes) {
  auto *target = static_cast<std::byte *>(to);
  std::array<Copy, 2> copies;
  Status status = VK_SUCCESS;
  ++core->session->counters.synchronizations;
  for (size_t done = 0, k = 0; done < bytes && !status;
       done += pieceBytes, k = 1 - k) {
    status = finish(copies[k]);
    size_t piece = std::min(bytes - done, pieceBytes);
    if (!status)
      status = start(copies[k], target + done, from + done, piece);
  }
  for (Copy &copy : copies) {
    if (!status)
      status = finish(copy);
    put(copy);
  }
  return status;
}

} // namespace costate::runtime::vulkan
