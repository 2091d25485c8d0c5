#pragma once
/// Random numbers that are the same on every machine.

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace costate::fuzz {

/// splitmix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x2545F4914F6CDD1Dull + 1) {}

  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  /// 0 to n - 1.
  int below(int n) { return int(next() % uint64_t(n)); }
  /// `low` to `high`, both included.
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  double real(double low, double high) {
    return low + (high - low) * double(next() >> 11) * 0x1p-53;
  }
  template <class List> auto &pick(List &&list) {
    return list[size_t(below(int(std::size(list))))];
  }

private:
  uint64_t state;
};

} // namespace costate::fuzz
