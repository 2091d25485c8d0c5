#pragma once
/// How far roundings of sums move results: what is ill-conditioned in a sum
/// over many work items, as `sin(1e4 * s)` is, has no bits that all orders of
/// the additions agree on.

#include "property/Arrays.h"

namespace costate::property {

/// Any NaN equals any other, -0 equals 0.
bool agree(double a, double b, double tolerance);

class Spread {
public:
  static constexpr uint64_t runs = 8; ///< of which the most is taken

  /// Takes in another run with what is wanted; false if integers differ, which
  /// no tolerance is for.
  bool add(const Values &run, const Values &wanted);
  bool add(const Memory &run, const Memory &wanted);

  /// By how much another order may change an element. Of 30,000 random sums of
  /// 420 to 15,000 addends none is further away where it is 16 partial ones; of
  /// 70 addends it is one of 500.
  double allowed(size_t array, size_t element) const {
    return most.empty() ? 0 : 8 * most[array][element];
  }

private:
  Values most;
};

} // namespace costate::property
