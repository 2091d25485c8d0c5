#include "autodiff/gather/Reach.h"

using namespace mlir;

namespace costate::autodiff {

/// Further ones might overflow.
static constexpr int64_t farthest = int64_t(1) << 24;
/// Most work items that one element of a border is reached by.
static constexpr int64_t mostItems = 8;
/// Where a constant is about the extent.
static constexpr int64_t likelyItems = 3;

bool Reach::isSloped(size_t step) const {
  return steps->all[step].value.coefficient(steps->index) == slope;
}

Affine Reach::shift(size_t step) const {
  Affine own = steps->all[step].value - (base + rest);
  own.terms.erase(steps->index);
  if (slope != 1) // a constant, by reachOf
    own.constant /= slope;
  return own;
}

Affine Reach::target(size_t step, int64_t number) const {
  const Step &own = steps->all[step];
  Affine element = own.value - (base + rest);
  int64_t times = element.coefficient(steps->index);
  element.terms.erase(steps->index);
  return element + (own.from + number) * times;
}

int64_t Reach::length(size_t step, const Affine &extent,
                      SmallVectorImpl<Affine> &assumed) const {
  Affine length = steps->end(step, extent) - steps->all[step].from;
  if (length.isConstant())
    return length.constant;
  int64_t most = isExtent(-length.constant) ? likelyItems : length.constant;
  assumed.push_back(-length + most);
  return most;
}

Affine Candidate::distance() const { return shift ? *shift : target - item; }

std::optional<Reach> reachOf(StepAnalysis &analysis, Value position,
                             unsigned dim) {
  Reach reach;
  reach.steps = analysis.of(position);
  if (!reach.steps || !reach.steps->index)
    return std::nullopt;
  Value index = reach.steps->index;
  reach.dim = dim;
  reach.main = reach.steps->longest(analysis.extentOf(index));
  const Affine &main = reach.steps->all[reach.main].value;
  reach.slope = main.coefficient(index);
  if (reach.slope == 0 || !llvm::isInt<16>(reach.slope) ||
      std::abs(main.constant) > farthest)
    return std::nullopt;
  if (reach.slope != 1 && reach.steps->all.size() > 1)
    return std::nullopt;
  reach.base = main;
  reach.base.terms.erase(index);
  reach.base.constant = 0;
  int64_t width = std::abs(reach.slope);
  reach.rest = ((main.constant % width) + width) % width;
  return reach;
}

std::optional<std::vector<Candidate>>
candidates(const Reach &reach, const Affine &extent,
           SmallVectorImpl<Affine> &assumed) {
  std::vector<Candidate> found;
  for (size_t k = 0; k < reach.steps->all.size(); ++k) {
    const Affine &from = reach.steps->all[k].from;
    const Affine &to = reach.steps->end(k, extent);
    if (reach.isSloped(k)) {
      found.push_back({reach.shift(k), {}, {}, from, to, k == reach.main});
      continue;
    }
    int64_t length = reach.length(k, extent, assumed);
    if (length > mostItems)
      return std::nullopt;
    for (int64_t item = 0; item < length; ++item)
      found.push_back(
          {std::nullopt, from + item, reach.target(k, item), from, to});
  }
  return found;
}

/// Whether a number lies at the beginning of the range rather than at its end.
static bool isEarly(const Affine &number, const Affine &extent) {
  if (number.isConstant() && !extent.isConstant())
    return !isExtent(number.constant);
  return 2 * estimate(number) < estimate(extent);
}

/// Whether most work items are in an interval, and not only some at a border.
static bool isLong(const Affine &length, const Affine &extent) {
  if (length.isConstant() && !extent.isConstant())
    return isExtent(length.constant);
  return 2 * estimate(length) >= estimate(extent);
}

/// The largest of `numbers` that are certainly not less than `number`, or the
/// least of those that are not greater.
static Affine tightened(Affine number, ArrayRef<Affine> numbers, int sign) {
  for (const Affine &other : numbers)
    if (auto by = constantDifference(other, number); by && sign * *by > 0)
      number = other;
  return number;
}

void bound(const Reach &reach, const Affine &extent, const Bounds &where,
           Bounds &inner, Bounds &hull) {
  auto add = [&](const Affine &low, const Affine &high, bool isMain) {
    hull.lows.push_back(low);
    hull.highs.push_back(high);
    if (isMain || !isEarly(low, extent))
      inner.highs.push_back(isMain ? high : low);
    if (isMain || isEarly(low, extent))
      inner.lows.push_back(isMain ? low : high);
  };
  for (size_t k = 0; k < reach.steps->all.size(); ++k) {
    if (reach.isSloped(k)) {
      Affine shift = reach.shift(k);
      Affine from = tightened(reach.steps->all[k].from, where.lows, 1);
      Affine to = tightened(reach.steps->end(k, extent), where.highs, -1);
      add(from + shift, to + shift,
          k == reach.main && isLong(to - from, extent));
      continue;
    }
    SmallVector<Affine, 0> assumed; // by `candidates`
    for (int64_t item = reach.length(k, extent, assumed); item-- > 0;) {
      Affine element = reach.target(k, item);
      add(element, element + 1, false);
    }
  }
  // Others of its work items are on another step, also if conditions leave few;
  // an end that is no number may lie behind the extent.
  Affine shift = reach.shift(reach.main);
  inner.lows.push_back(reach.steps->all[reach.main].from + shift);
  inner.highs.push_back(reach.steps->end(reach.main, extent) + shift);
  inner.highs.push_back(extent + shift);
}

} // namespace costate::autodiff
