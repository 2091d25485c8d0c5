#include "runtime/vulkan/Core.h"

namespace costate::runtime::vulkan {

static constexpr size_t deviceBlock = size_t(64) << 20;
static constexpr size_t hostBlock = size_t(1) << 20;

Result<std::shared_ptr<Core>> Core::open(std::shared_ptr<Session> session) {
  auto core = std::make_shared<Core>();
  core->session = session;
  auto pool = [&](PoolKind kind, size_t block) {
    return std::make_shared<Pool>(session, kind, block);
  };
  core->device = pool(PoolKind::Device, deviceBlock);
  core->host = pool(PoolKind::Host, hostBlock);
  core->written = pool(PoolKind::Written, hostBlock);
  Result<std::unique_ptr<Stream>> stream = Stream::open(session, core->written);
  if (!stream)
    return stream.error();
  core->stream = std::move(*stream);
  return core;
}

Core::~Core() {
  if (isForked())
    (void)stream.release(); // it would wait for its thread
}

Status Slot::open(Core &core, size_t bytes) {
  if (memory)
    return VK_SUCCESS;
  Piece piece;
  Status status = core.written->allocate(bytes, piece);
  memory = piece.host;
  address = piece.address;
  return status;
}

void Slot::close(Core &core) {
  if (memory && core.stream->waitFor(inUse) == VK_SUCCESS)
    core.written->release(address);
}

Status Slot::mark(Core &core) {
  inUse = core.stream->now();
  return VK_SUCCESS;
}

Status Slot::waitUntilFree(Core &core) {
  if (core.stream->isDone(inUse))
    return VK_SUCCESS;
  ++core.session->counters.synchronizations;
  return core.stream->waitFor(inUse);
}

Status Slot::send(Core &core, std::byte *to, size_t place, size_t bytes) {
  Place here = core.written->find(address + place);
  Place there = core.placeOf(to);
  return core.stream->record([&](Commands &commands) {
    commands.copy(there, here, bytes);
    return VK_SUCCESS;
  });
}

} // namespace costate::runtime::vulkan
