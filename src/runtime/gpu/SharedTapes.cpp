#include "runtime/gpu/SharedTapes.h"

#include <algorithm>

namespace costate::runtime::gpu {

static constexpr size_t manyRows = 128; ///< of a warp of the largest block

int SharedTapes::blockThreads() const {
  return std::min<int>(TAPE_BLOCK_THREADS, mostThreads);
}

bool SharedTapes::isLittle() const {
  return bytesOfBlock / shape.rowBytes() < manyRows * warpsOfBlock();
}

SharedTapes SharedTapes::ofChip() const {
  SharedTapes all = *this;
  if (bytesOfChip > bytesOfMultiprocessor) {
    all.bytesOfMultiprocessor = bytesOfChip;
    all.bytesOfBlock = bytesOfChip - reservedPerBlock - otherBytes;
  }
  return all;
}

TapeShares SharedTapes::share(size_t warps) const {
  size_t most = isLittle() ? std::min(warpsOfBlock(), warps) : warpsOfBlock();
  for (size_t here = most;; here /= 2) {
    size_t blocks = std::max<size_t>(1, warps / here);
    size_t bytes = bytesOfMultiprocessor / blocks;
    size_t reserved = reservedPerBlock + otherBytes;
    bytes = bytes > reserved ? bytes - reserved : 0;
    if (bytes > bytesOfBlock && here > 1)
      continue;
    return {.blocks = blocks,
            .warpsOfBlock = here,
            .rows = std::min(bytes, bytesOfBlock) / shape.rowBytes() / here};
  }
}

/// Rounded up: some devices assemble a kernel for each size.
static size_t roundUp(uint64_t rows) { return (rows + 7) / 8 * 8; }

/// As many warps as leave each its rows. Where memory is little, fewer warps
/// than one block may have are slower than running iterations again, so that
/// only those have them who cannot do with less; where it is not, what no tile
/// takes is left to the cache.
std::optional<TapePlan> SharedTapes::plan(uint64_t tiles,
                                          WantedRows wanted) const {
  for (size_t threads : {768, 512, 256, 192, 160, 128, 64, 32}) {
    size_t warps = warpsOf(threads);
    if (warps == 0)
      break;
    if (warps < warpsOfBlock() && !wanted.isLeast && isLittle())
      break;
    auto [blocks, warpsOfBlock, rows] = share(warps);
    bool idle =
        blocks > 1 && tiles <= (blocks - 1) * warpsOfBlock * multiprocessors;
    if (rows == 0 || rows < wanted.rows || idle)
      continue;
    if (wanted.most < rows && !isLittle())
      rows = std::min(rows, roundUp(wanted.most));
    auto count =
        static_cast<int64_t>(std::min(tiles, blocks * multiprocessors));
    return TapePlan{
        .grid = {count, static_cast<int>(warpsOfBlock) * shape.lanes},
        .sharedRows = rows};
  }
  return std::nullopt;
}

/// Shared memory if everything fits there, or nearly; for what is expensive to
/// run again the heap; else shared memory with recomputation, if that is deep
/// enough.
TapePlacement SharedTapes::place(const RangeTapes &range) const {
  const TapeNeed &known = range.known;
  uint64_t most = range.isExact ? known.rows : UINT64_MAX;
  bool expensive =
      range.expensive && (isLittle() || !range.moderatelyExpensive);
  if (known.rows == 0)
    if (auto shared = plan(range.tiles, {.rows = 1, .isLeast = true}))
      return {.shared = shared};
  if (auto shared = plan(range.tiles, {.rows = known.rows, .most = most}))
    return {.shared = shared};
  if (range.usual) {
    uint64_t rows = std::max<uint64_t>(known.minRows, *range.usual);
    bool isBusy = rows <= share(warpsOf(512)).rows;
    if (auto shared = plan(range.tiles, {.rows = rows, .most = most});
        shared && (isBusy || !expensive))
      return {.shared = shared};
  }
  return {.shared =
              plan(range.tiles,
                   {.rows = known.minRows, .isLeast = true, .most = most}),
          .wantsHeap = expensive};
}

} // namespace costate::runtime::gpu
