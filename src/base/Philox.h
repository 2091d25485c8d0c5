#pragma once
/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// 2011).

#include <algorithm>
#include <cstdint>

namespace costate {

/// The first two words for the counter of the words of `counter` and `stream`.
inline uint64_t philox(uint64_t key, uint64_t stream, uint64_t counter) {
  auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  uint32_t x[] = {low(counter), high(counter), low(stream), high(stream)};
  uint32_t k[] = {low(key), high(key)};
  for (int round = 0; round < 10; ++round) {
    uint64_t p = uint64_t(0xD2511F53) * x[0], q = uint64_t(0xCD9E8D57) * x[2];
    uint32_t next[] = {high(q) ^ x[1] ^ k[0], low(q), high(p) ^ x[3] ^ k[1],
                       low(p)};
    std::copy(next, next + 4, x);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return x[0] | uint64_t(x[1]) << 32;
}

} // namespace costate
