#pragma once
/// Boxes of arrays as rows of memory.

#include "runtime/ArrayStorage.h"

#include <span>

namespace costate::runtime {

/// Visits the rows that `box` is in memory like that of `array` at `start`.
template <class Visit>
Result<> forEachRows(const ArrayStorage &array, const Box &box,
                     std::byte *start, Visit visit) {
  const size_t width = sizeOf(array.dtype);
  auto bytes = [=](int64_t count) {
    return static_cast<size_t>(count) * width;
  };
  Result<> result;
  forEachRuns(box, array.extents, [&](const Runs &runs) {
    if (result)
      result = visit(Rows(start + bytes(runs.first), bytes(runs.length),
                          static_cast<size_t>(runs.count), bytes(runs.pitch)));
  });
  return result;
}

/// Visits the rows of `boxes` in memory like that of `array` at `start`, and
/// packed, one after the other, from `packed` on.
template <class Visit>
Result<> forEachPiece(const ArrayStorage &array, std::span<const Box> boxes,
                      std::byte *packed, std::byte *start, Visit visit) {
  Result<> result;
  for (const Box &box : boxes)
    if (result)
      result = forEachRows(array, box, start, [&](Rows original) {
        Rows values(packed, original.bytes, original.count, original.bytes);
        packed += values.size();
        return visit(original, values);
      });
  return result;
}

inline size_t bytesOf(const ArrayStorage &array, std::span<const Box> boxes) {
  int64_t sum = 0;
  for (const Box &box : boxes)
    sum += box.size();
  return static_cast<size_t>(sum) * sizeOf(array.dtype);
}

} // namespace costate::runtime
