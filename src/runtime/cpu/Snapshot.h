#pragma once
/// A copy of adjoint arrays, to undo a launch that failed.

#include "runtime/Device.h"
#include "runtime/cpu/BlockPool.h"

#include <memory>
#include <span>

namespace costate::runtime::cpu {

class Snapshot {
public:
  /// Null if memory runs out.
  static std::unique_ptr<Snapshot> take(BlockPool &pool,
                                        std::span<const Buffer> buffers);
  ~Snapshot();
  /// Puts the contents back.
  void restore() const;

private:
  Snapshot(BlockPool &pool, std::span<const Buffer> buffers)
      : pool(pool), buffers(buffers) {}
  BlockPool &pool;
  std::span<const Buffer> buffers;
  std::byte *block = nullptr;
  size_t bytes = 0;
};

} // namespace costate::runtime::cpu
