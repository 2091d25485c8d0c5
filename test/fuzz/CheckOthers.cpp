/// Derivatives along zero, single entries, differences.

#include "fuzz/Checker.h"

#include <cmath>

using namespace mlir;

namespace costate::fuzz {

void Checker::still(ArrayRef<bool> active) {
  Arrays zeros = zerosLike(kernel, before.arrays);
  auto expectZeros = [&](const char *what, const Derived &derived,
                         const Memory &from) {
    Memory memory = extended(from, derived.kernel, zeros, versions);
    launch(derived.launchable, memory, Property::Still);
    Arrays left = extraOf(memory, derived.kernel, before.arrays.size());
    std::string text = difference(kernel, left, zeros, 0);
    if (!text.empty())
      throw Mismatch{Property::Still,
                     "along zero, " + (what + (" of " + text))};
  };
  if (auto forward = forwardOf(kernel, active))
    expectZeros("the tangent", *forward, before);
  std::string reason;
  if (auto gradient = differentiate(kernel, reverseMode, active, reason)) {
    versions = recordedFor(*gradient, before);
    expectZeros("the adjoint", *gradient, after);
  }
}

void Checker::entries(const Derived &forward, ArrayRef<bool> active,
                      const Arrays &weights) {
  for (int round = 0; round < 4; ++round) {
    size_t k = size_t(random.below(int(active.size())));
    if (!active[k])
      continue;
    Type element =
        cast<ir::ArrayType>(kernel.getArgumentTypes()[k]).getElementType();
    size_t at = size_t(random.below(int(sizeOf(before.arrays[k]))));
    Arrays direction = zerosLike(kernel, before.arrays);
    set(direction[k], element, at, 1);
    Dot slope = dot(kernel, along(forward, before, direction), weights);
    double adjoint = get((*adjoints)[k], element, at);
    if (!(std::abs(slope.sum - adjoint) <= tolerance() * (1 + slope.magnitude)))
      throw Mismatch{Property::Entries, "the adjoint of " + placeText(k, at) +
                                            " is " + numberText(adjoint) +
                                            ", not " + numberText(slope.sum)};
  }
}

//===-- Differences -------------------------------------------------------===//

namespace {
/// Values at the steps -h, -h/2, -h/4, 0, h/4, h/2, h, and at two tiny ones.
struct Samples {
  static constexpr double h = 1e-4;
  static constexpr double tiny = 1e-7;
  static constexpr double steps[] = {-h,    -h / 2, -h / 4, 0,   h / 4,
                                     h / 2, h,      -tiny,  tiny};

  double values[std::size(steps)];

  /// The slope at 0, unless there is a kink or a jump, or many of them: then
  /// those of pairs of steps, or the sides, disagree.
  std::optional<double> slope() const {
    double d1 = (values[6] - values[0]) / (2 * h),
           d2 = (values[5] - values[1]) / h,
           d3 = (values[4] - values[2]) * 2 / h;
    double first = (4 * d2 - d1) / 3, second = (4 * d3 - d2) / 3;
    double left = (values[3] - values[2]) * 4 / h,
           right = (values[4] - values[3]) * 4 / h;
    double close = (values[8] - values[7]) / (2 * tiny);
    if (!isClose(left, right, 1e-2) || !isClose(first, second, 1e-7) ||
        !isClose(close, second, 1e-2))
      return std::nullopt;
    return second;
  }
};
} // namespace

/// Judges `derivatives` of floats of f64 by what `at` returns for steps.
template <class At, class Judge>
static void forSlopes(ir::KernelOp kernel, At at, Judge judge) {
  std::vector<Arrays> samples;
  for (double step : Samples::steps) {
    std::optional<Arrays> sample = at(step);
    if (!sample)
      return;
    samples.push_back(std::move(*sample));
  }
  for (size_t k = 0; k < samples[0].size(); ++k) {
    auto type = dyn_cast<ir::ArrayType>(kernel.getArgumentTypes()[k]);
    if (!type || !type.getElementType().isF64() || samples[0][k].bytes.empty())
      continue;
    for (size_t e = 0; e < sizeOf(samples[0][k]); ++e) {
      Samples one;
      for (size_t s = 0; s < samples.size(); ++s)
        one.values[s] = get(samples[s][k], type.getElementType(), e);
      if (std::optional<double> slope = one.slope())
        judge(k, e, *slope);
    }
  }
}

/// Central differences of all results along a direction.
void Checker::differences(const Derived &forward) {
  Launchable launchable = translate(kernel, Property::Runs);
  Memory from = nudged();
  Arrays direction = randomLike(kernel, before, allFloats(kernel), random);
  Arrays tangents;
  try {
    tangents = along(forward, from, direction);
  } catch (const SetAside &) {
    return;
  } catch (const Mismatch &) {
    return; // a race, perhaps, that is none for the input itself
  }
  auto at = [&](double factor) -> std::optional<Arrays> {
    Memory memory = from;
    addTo(kernel, memory.arrays, direction, factor);
    if (!launchable.run(memory, {.steps = 40000, .races = false}) ||
        !(largest(kernel, memory.arrays) < wild))
      return std::nullopt;
    return std::move(memory.arrays);
  };
  forSlopes(kernel, at, [&](size_t k, size_t e, double slope) {
    ++result.judged;
    Type f64 = Float64Type::get(kernel.getContext());
    double tangent = get(tangents[k], f64, e);
    if (!isClose(tangent, slope, 1e-6))
      throw Mismatch{Property::Differences,
                     "the tangent of " + placeText(k, e) + " is " +
                         numberText(tangent) + ", differences " +
                         numberText(slope)};
  });
}

/// Adjoints at the input moved by `factor` along `direction`.
std::optional<Arrays> Checker::gradientAt(const Derived &gradient,
                                          const Arrays &weights,
                                          const Arrays &direction,
                                          double factor) {
  Memory from = before;
  addTo(kernel, from.arrays, direction, factor);
  Memory left = from;
  interpreter::InterpreterOptions options{.steps = 40000, .races = false};
  if (!translate(kernel, Property::Runs).run(left, options))
    return std::nullopt;
  std::vector<Recorded> recorded = recordedFor(gradient, from);
  Memory memory = extended(left, gradient.kernel, weights, recorded);
  options.steps = 200 * steps + 100000;
  if (!gradient.launchable.run(memory, options))
    return std::nullopt;
  return extraOf(memory, gradient.kernel, before.arrays.size());
}

/// Whether second derivatives are right at a point nearby. At a kink they
/// follow a convention, even where the gradient happens to be smooth.
bool Checker::isRightNearby() {
  if (isNearby)
    return false;
  Properties second =
      Properties::of({Property::Second, Property::SecondDifferences});
  Memory memory = nudged();
  OwningOpRef<ModuleOp> copy = moduleWith(kernel);
  Checker checker(session, *copy, memory, isSingular, seed, second);
  checker.isNearby = true;
  return checker.run().kind != Verdict::Wrong;
}

void Checker::gradientDifferences(const Derived &gradient,
                                  const Arrays &weights,
                                  const Arrays &direction,
                                  const Arrays &expected) {
  auto at = [&](double factor) {
    return gradientAt(gradient, weights, direction, factor);
  };
  forSlopes(kernel, at, [&](size_t k, size_t e, double slope) {
    ++result.judged;
    Type f64 = Float64Type::get(kernel.getContext());
    double tangent = get(expected[k], f64, e);
    if (!isClose(tangent, slope, 1e-5) && !isRightNearby())
      throw Mismatch{Property::SecondDifferences,
                     "the tangent of the adjoint of " + placeText(k, e) +
                         " is " + numberText(tangent) + ", differences " +
                         numberText(slope)};
  });
}

} // namespace costate::fuzz
