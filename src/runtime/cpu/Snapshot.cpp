#include "runtime/cpu/Snapshot.h"

#include "runtime/cpu/Pages.h"

#include <cstring>

namespace costate::runtime::cpu {

std::unique_ptr<Snapshot> Snapshot::take(MemoryBudget &budget,
                                         std::span<const Buffer> buffers) {
  std::unique_ptr<Snapshot> snapshot(new Snapshot(budget, buffers));
  size_t total = 0;
  for (const Buffer &buffer : buffers)
    total += buffer.bytes;
  if (total == 0)
    return snapshot;
  size_t rounded = wholePages(total);
  if (!budget.take(rounded))
    return nullptr;
  snapshot->bytes = rounded;
  snapshot->pages = mapPages(rounded);
  if (!snapshot->pages)
    return nullptr;
  std::byte *to = snapshot->pages;
  for (const Buffer &buffer : buffers) {
    if (buffer.bytes)
      std::memcpy(to, buffer.address, buffer.bytes);
    to += buffer.bytes;
  }
  return snapshot;
}

Snapshot::~Snapshot() {
  unmapPages(pages, bytes);
  budget.give(bytes);
}

void Snapshot::restore() const {
  const std::byte *from = pages;
  for (const Buffer &buffer : buffers) {
    if (buffer.bytes)
      std::memcpy(buffer.address, from, buffer.bytes);
    from += buffer.bytes;
  }
}

} // namespace costate::runtime::cpu
