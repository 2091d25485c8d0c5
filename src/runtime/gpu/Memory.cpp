#include "runtime/gpu/Memory.h"

namespace costate::runtime::gpu {

Result<std::byte *> Memory::allocate(size_t bytes) {
  if (!budget.take(bytes))
    return noRoomFailure(budget, bytes);
  Result<std::byte *> address = driver().allocate(bytes);
  if (!address)
    budget.give(bytes);
  return address;
}

void Memory::release(std::byte *address, size_t bytes) {
  driver().release(address);
  budget.give(bytes);
}

std::vector<std::shared_ptr<void>> Memory::keepScratch() const {
  std::vector<std::shared_ptr<void>> kept;
  for (const Scratch *one : scratch)
    if (!one->isFound)
      kept.push_back(one->start);
  return kept;
}

Result<> Scratch::reserve(size_t wanted) {
  if (wanted <= bytes())
    return {};
  clear();
  Result<std::byte *> made = memory.allocate(wanted);
  if (!made)
    return made.error();
  start = std::shared_ptr<std::byte>(
      *made, [&memory = memory, wanted](std::byte *address) {
        memory.release(address, wanted);
      });
  size = wanted;
  return {};
}

} // namespace costate::runtime::gpu
