#include "property/Spread.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace costate::property {

bool agree(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance ||
         (std::isnan(a) && std::isnan(b));
}

static double distance(double a, double b) {
  if (agree(a, b, 0))
    return 0;
  double distance = std::abs(a - b);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity()
                              : distance;
}

bool Spread::add(const Values &run, const Values &wanted) {
  if (most.empty())
    most = zerosLike(wanted);
  for (size_t array = 0; array < wanted.size(); ++array)
    for (size_t i = 0; i < wanted[array].size(); ++i)
      most[array][i] =
          std::max(most[array][i], distance(run[array][i], wanted[array][i]));
  return true;
}

bool Spread::add(const Memory &run, const Memory &wanted) {
  for (size_t k = 0; k < wanted.size(); ++k)
    if (!isFloat(storedArrays()[k].type) && run[k].bytes != wanted[k].bytes)
      return false;
  return add(toDoubles(run), toDoubles(wanted));
}

} // namespace costate::property
