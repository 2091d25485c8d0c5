#pragma once
/// A copy of adjoint arrays, to undo a launch that failed.

#include "runtime/Device.h"
#include "runtime/MemoryBudget.h"

#include <memory>
#include <span>

namespace costate::runtime::cpu {

class Snapshot {
public:
  /// Null if memory runs out.
  static std::unique_ptr<Snapshot> take(MemoryBudget &budget,
                                        std::span<const Buffer> buffers);
  ~Snapshot();
  /// Puts the contents back.
  void restore() const;

private:
  Snapshot(MemoryBudget &budget, std::span<const Buffer> buffers)
      : budget(budget), buffers(buffers) {}
  MemoryBudget &budget;
  std::span<const Buffer> buffers;
  std::byte *pages = nullptr;
  size_t bytes = 0;
};

} // namespace costate::runtime::cpu
