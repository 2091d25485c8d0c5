#include "runtime/gpu/Memory.h"

namespace costate::runtime::gpu {

Result<std::byte *> Memory::allocate(size_t bytes) {
  if (!budget.take(bytes))
    return noRoomFailure(budget, bytes);
  Result<std::byte *> address = driver->allocate(bytes);
  if (!address)
    budget.give(bytes);
  return address;
}

void Memory::release(std::byte *address, size_t bytes) {
  driver->release(address);
  budget.give(bytes);
}

Result<> Scratch::reserve(size_t bytes) {
  if (bytes <= size)
    return {};
  clear();
  Result<std::byte *> made = memory.allocate(bytes);
  if (!made)
    return made.error();
  start = *made;
  size = bytes;
  return {};
}

void Scratch::clear() {
  if (start)
    memory.release(start, size);
  start = nullptr;
  size = 0;
}

} // namespace costate::runtime::gpu
