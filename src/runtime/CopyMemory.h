#pragma once
/// Memory for many copies, small ones too.

#include "runtime/Device.h"

#include <memory>
#include <mutex>
#include <vector>

namespace costate::runtime {

/// On one device; given back all at once. Safe to use from several threads.
class CopyMemory {
public:
  explicit CopyMemory(std::shared_ptr<Device> device);
  ~CopyMemory();
  CopyMemory(const CopyMemory &) = delete;
  CopyMemory &operator=(const CopyMemory &) = delete;

  /// OutOfMemory.
  Result<Buffer> take(size_t bytes);
  /// Nobody needs any longer what has been taken, so it may be taken again.
  void reuse();

private:
  Result<Buffer> allocate(size_t bytes);

  const std::shared_ptr<Device> device;
  std::mutex mutex; ///< guards what follows
  std::vector<Buffer> blocks;
  size_t total = 0; ///< bytes of them
  Buffer rest;      ///< of a block
};

} // namespace costate::runtime
