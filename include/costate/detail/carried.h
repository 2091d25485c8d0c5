#pragma once
/// What one work item of a range leaves to another, for warnings of front ends.

#include "costate/types.h"

#include <vector>

namespace costate::detail {

struct TracedKernel;

/// An element of an array that one work item changes and another one reads: it
/// depends on chance which of them comes first.
struct CarriedElement {
  uint32_t argument; ///< the array, from 0
  Loc range, change, read;
  bool isShared; ///< all work items use one and the same element
  bool isAdded;  ///< changed by atomic additions only
  bool isSure;   ///< whatever is in memory
};

/// At most one for each array in a range, and only what certain indices show:
/// constants, and sums of indices of loops and values that all work items
/// share.
std::vector<CarriedElement> carriedElements(const TracedKernel &traced);

} // namespace costate::detail
