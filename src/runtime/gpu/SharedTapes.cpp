#include "runtime/gpu/SharedTapes.h"

#include "base/DeviceTape.h"

#include <algorithm>

namespace costate::runtime::gpu {

static constexpr size_t manyRows = 128; ///< of a warp of the largest block

int SharedTapes::blockThreads() const {
  return std::min<int>(TAPE_BLOCK_THREADS, gpu.blockThreads);
}

bool SharedTapes::isLittle() const {
  return gpu.sharedPerBlock / rowBytes < manyRows * warpsOfBlock();
}

TapeShares SharedTapes::share(size_t warps) const {
  size_t most = isLittle() ? std::min(warpsOfBlock(), warps) : warpsOfBlock();
  for (size_t here = most;; here /= 2) {
    size_t blocks = std::max<size_t>(1, warps / here);
    size_t bytes = gpu.sharedPerMultiprocessor / blocks;
    bytes = bytes > reservedPerBlock ? bytes - reservedPerBlock : 0;
    if (bytes > gpu.sharedPerBlock && here > 1)
      continue;
    return {.blocks = blocks,
            .warpsOfBlock = here,
            .rows = std::min(bytes, gpu.sharedPerBlock) / rowBytes / here};
  }
}

/// Rounded up: some devices assemble a kernel for each size.
static size_t roundUp(uint64_t rows) { return (rows + 7) / 8 * 8; }

/// As many warps as leave each its rows. Where memory is little, fewer warps
/// than one block may have are slower than running turns again, so that only
/// those have them who cannot do with less; where it is not, what no tile takes
/// is left to the cache.
std::optional<TapePlan> SharedTapes::plan(uint64_t tiles,
                                          WantedRows wanted) const {
  auto processors = static_cast<uint64_t>(gpu.multiprocessors);
  for (size_t warps : {24, 16, 8, 6, 5, 4, 2, 1}) {
    if (warps < warpsOfBlock() && !wanted.isLeast && isLittle())
      break;
    auto [blocks, warpsOfBlock, rows] = share(warps);
    bool idle = blocks > 1 && tiles <= (blocks - 1) * warpsOfBlock * processors;
    if (rows == 0 || rows < wanted.rows || idle)
      continue;
    if (wanted.most < rows && !isLittle())
      rows = std::min(rows, roundUp(wanted.most));
    auto count = static_cast<int64_t>(std::min(tiles, blocks * processors));
    return TapePlan{.grid = {count, static_cast<int>(32 * warpsOfBlock)},
                    .sharedRows = rows};
  }
  return std::nullopt;
}

} // namespace costate::runtime::gpu
