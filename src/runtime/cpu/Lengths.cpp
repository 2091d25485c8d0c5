/// In which order lanes take work items whose loops differ in length.

#include "code/KernelCode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

using namespace costate::runtime;

int32_t costate::runtime::costate_lengths_differ(const int32_t *lengths,
                                                 int64_t count, int64_t lanes,
                                                 int64_t idle) {
  int64_t waits = 0;
  for (int64_t first = 0; first < count; first += lanes) {
    int64_t some = std::min(lanes, count - first);
    int64_t longest = 0, sum = 0;
    for (int64_t k = first; k < first + some; ++k) {
      longest = std::max<int64_t>(longest, lengths[k]);
      sum += lengths[k];
    }
    waits += some * longest - sum;
  }
  return count > lanes && waits > idle * count;
}

/// A counting sort, of at most 256 different lengths.
void costate::runtime::costate_order_by_length(const int32_t *lengths,
                                               int64_t count,
                                               uint16_t *places) {
  constexpr int bits = 8;
  std::span all(lengths, static_cast<size_t>(count));
  int32_t longest = 0;
  for (int32_t length : all)
    longest = std::max(longest, length);
  int shift = std::max(
      0,
      static_cast<int>(std::bit_width(static_cast<uint32_t>(longest))) - bits);
  auto bucketOf = [&](int32_t length) { return (longest - length) >> shift; };
  std::array<uint16_t, (1 << bits) + 1> ends{};
  for (int32_t length : all)
    ++ends[static_cast<size_t>(bucketOf(length)) + 1];
  for (size_t bucket = 1; bucket < ends.size(); ++bucket)
    ends[bucket] = static_cast<uint16_t>(ends[bucket] + ends[bucket - 1]);
  for (size_t k = 0; k < all.size(); ++k)
    places[ends[static_cast<size_t>(bucketOf(all[k]))]++] =
        static_cast<uint16_t>(k);
}
