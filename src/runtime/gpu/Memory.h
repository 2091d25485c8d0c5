#pragma once
/// Memory of a GPU within a limit.

#include "runtime/MemoryBudget.h"
#include "runtime/gpu/Driver.h"

namespace costate::runtime::gpu {

class Memory {
public:
  Memory(std::shared_ptr<Driver> driver, size_t limit)
      : driver(std::move(driver)), budget(limit) {}

  Result<std::byte *> allocate(size_t bytes);
  void release(std::byte *address, size_t bytes);

  const std::shared_ptr<Driver> driver;
  MemoryBudget budget;
};

/// Memory that a device keeps from launch to launch, and that only grows.
class Scratch {
public:
  explicit Scratch(Memory &memory) : memory(memory) {}
  ~Scratch() { clear(); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// Contents are lost when it grows.
  Result<> reserve(size_t bytes);
  void clear();
  std::byte *address() const { return start; }
  size_t bytes() const { return size; }

private:
  Memory &memory;
  std::byte *start = nullptr;
  size_t size = 0;
};

} // namespace costate::runtime::gpu
