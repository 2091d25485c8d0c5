#pragma once
/// Memory of the host that a GPU copies from and to, for a while.

#include "runtime/gpu/Memory.h"

#include <map>

namespace costate::runtime::gpu {

/// Such memory takes long to make, so that it is kept for who takes as much.
class PinnedMemory {
public:
  explicit PinnedMemory(Memory &memory) : memory(memory) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory &) = delete;

  /// Pieces of at most so many bytes share a block.
  static constexpr size_t smallBytes = size_t(64) << 10;

  Result<Buffer> take(size_t bytes);
  void put(const std::byte *address);
  /// Where device code finds what has been taken.
  std::byte *onDevice(const std::byte *address) const;
  /// Releases idle pieces, the largest first, until at most `most` bytes are
  /// left.
  void shrink(size_t most);

private:
  struct Piece {
    size_t bytes;
    std::byte *onDevice;
    bool isBlock; ///< not a part of one
  };
  Result<std::byte *> make(size_t bytes);
  Result<std::byte *> makeSmall(size_t bytes);

  Memory &memory;
  std::map<const std::byte *, Piece> pieces;
  std::multimap<size_t, std::byte *> idle; ///< by bytes
  std::vector<std::byte *> blocks;         ///< that small pieces share
};

} // namespace costate::runtime::gpu
