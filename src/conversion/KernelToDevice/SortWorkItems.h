#pragma once
/// Code in front of the tiles of a range that sorts its work items by depth
/// (device/DeviceSort.c).

#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/KernelToLLVM/Runtime.h"
#include "ir/Tape.h"

namespace costate::conversion {

/// What says how deep a work item is; null if the range is never sorted.
tape::DepthOp depthOf(mlir::Region &range);

/// What a function has at hand: its SortCall, its thread, the memory of its
/// block, and its TapePlace.
struct SortPlace {
  mlir::Value call, thread, memory, place;
};

/// Each thread looks at the depths of some work items, as the code of `range`
/// says, a copy of the range with `extents`.
void sortWorkItems(mlir::ImplicitLocOpBuilder &builder, Runtime &runtime,
                   ir::RangeOp range, mlir::ValueRange extents,
                   const SortPlace &here);

} // namespace costate::conversion
