#pragma once
/// Memory of a GPU within a limit.

#include "runtime/MemoryBudget.h"
#include "runtime/gpu/Driver.h"

#include <atomic>
#include <thread>
#include <vector>

namespace costate::runtime::gpu {

class Scratch;

class Memory {
public:
  Memory(std::shared_ptr<Driver> driver, size_t limit)
      : real(std::move(driver)), budget(limit) {}

  /// The one that is captured with, on the thread that captures.
  Driver &driver() const { return isCapturing() ? *capturing : *real; }
  bool isCapturing() const { return capturer == std::this_thread::get_id(); }

  Result<std::byte *> allocate(size_t bytes);
  void release(std::byte *address, size_t bytes);

  const std::shared_ptr<Driver> real;
  MemoryBudget budget;

  /// As it is now; not released before these.
  std::vector<std::shared_ptr<void>> keepScratch() const;

private:
  friend class CaptureScope;
  friend class Scratch;
  std::vector<const Scratch *> scratch;
  std::atomic<std::thread::id> capturer = {};
  Driver *capturing = nullptr;
};

/// While it lives, this thread works with another driver.
class CaptureScope {
public:
  CaptureScope(Memory &memory, Driver &driver) : memory(memory) {
    memory.capturing = &driver;
    memory.capturer = std::this_thread::get_id();
  }
  ~CaptureScope() { memory.capturer = std::thread::id(); }
  CaptureScope(const CaptureScope &) = delete;

private:
  Memory &memory;
};

/// Memory that a device keeps from launch to launch, and that only grows.
class Scratch {
public:
  /// `isFound`: device code finds it through a cell each time it runs, so
  /// graphs need not keep it.
  explicit Scratch(Memory &memory, bool isFound = false)
      : memory(memory), isFound(isFound) {
    memory.scratch.push_back(this);
  }
  ~Scratch() { std::erase(memory.scratch, this); }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  /// Contents are lost when it grows.
  Result<> reserve(size_t bytes);
  void clear() { start = nullptr; }
  std::byte *address() const { return start.get(); }
  size_t bytes() const { return start ? size : 0; }

private:
  friend class Memory;
  Memory &memory;
  const bool isFound;
  std::shared_ptr<std::byte> start;
  size_t size = 0;
};

} // namespace costate::runtime::gpu
