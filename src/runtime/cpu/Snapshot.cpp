#include "runtime/cpu/Snapshot.h"

#include <cstring>

namespace costate::runtime::cpu {

std::unique_ptr<Snapshot> Snapshot::take(BlockPool &pool,
                                         std::span<const Buffer> buffers) {
  std::unique_ptr<Snapshot> snapshot(new Snapshot(pool, buffers));
  for (const Buffer &buffer : buffers)
    snapshot->bytes += buffer.bytes;
  if (snapshot->bytes == 0)
    return snapshot;
  snapshot->block = pool.take(snapshot->bytes);
  if (!snapshot->block)
    return nullptr;
  std::byte *to = snapshot->block;
  for (const Buffer &buffer : buffers) {
    if (buffer.bytes)
      std::memcpy(to, buffer.address, buffer.bytes);
    to += buffer.bytes;
  }
  return snapshot;
}

Snapshot::~Snapshot() {
  if (block)
    pool.put(block, bytes);
}

void Snapshot::restore() const {
  const std::byte *from = block;
  for (const Buffer &buffer : buffers) {
    if (buffer.bytes)
      std::memcpy(buffer.address, from, buffer.bytes);
    from += buffer.bytes;
  }
}

} // namespace costate::runtime::cpu
