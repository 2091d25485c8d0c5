#pragma once
/// Blocks of work items: what they share, and what they do together. The ops
/// are documented in BlockOps.td.

#include "ir/Kernel.h"

#define GET_OP_CLASSES
#include "ir/BlockOps.h.inc"

namespace costate::ir {

/// The most bytes of an array that a block shares.
inline constexpr int64_t mostSharedBytes = 1 << 24;

/// On a range: how many of its work items are a block, 1 to 1024.
inline constexpr llvm::StringLiteral blockDimAttr = "costate.block_dim";
/// Of ranges that say nothing, where it matters.
inline constexpr int64_t usualBlockDim = 128;

/// Whether the work items of a block depend on each other in `op`, or in some
/// op of `range`.
inline bool isOfBlock(mlir::Operation *op) {
  return mlir::isa<SharedOp, SharedUpdateOp, GroupOp>(op);
}
bool hasBlocks(RangeOp range);
/// How many of its work items are a block, if they depend on each other.
int64_t blockDimOf(RangeOp range);

} // namespace costate::ir
