#pragma once
/// Which part of an array a launch touches, as far as its scalar arguments
/// tell.

#include <cstdint>
#include <vector>

namespace costate {

/// One index: a constant, or a scalar argument of the kernel plus a constant.
struct SliceIndex {
  int32_t scalar = -1; ///< number of the scalar argument; -1: none
  int64_t offset = 0;

  bool operator==(const SliceIndex &) const = default;
};

/// For every dimension the indices that may occur; no entries: any index.
struct ArraySection {
  std::vector<std::vector<SliceIndex>> dims;
};

} // namespace costate
