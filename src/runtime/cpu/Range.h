#pragma once
/// Running the chunks of a parallel range.

#include "runtime/cpu/Launch.h"

namespace costate::runtime::cpu {

struct Range {
  RangeBody body;
  const void *frame;
  int64_t workItems;
  double *sums;
  int64_t sumCount;
  int64_t kind; ///< a CostateSums
  int64_t slab; ///< work items of one first index, 0 if that does not matter
  int64_t lanes;
  int64_t site;
};

/// Runs all chunks and adds up their sums in order. False if the launch has
/// failed.
bool runRange(Launch &launch, const Range &range) noexcept;

} // namespace costate::runtime::cpu
