/// Derivatives of derivatives.

#include "fuzz/Checker.h"

#include <cmath>

using namespace mlir;

namespace costate::fuzz {

/// The argument of `of` that holds what the attribute `attribute` says of
/// argument `k`.
static std::optional<unsigned> argumentWith(ir::KernelOp of,
                                            StringRef attribute, size_t k) {
  for (unsigned at = 0; at < of.getNumArguments(); ++at)
    if (auto number = of.getArgAttrOfType<IntegerAttr>(at, attribute))
      if (size_t(number.getInt()) == k)
        return at;
  return std::nullopt;
}

/// Of `arrays`, which belong to the arguments of `of`, those that stand for the
/// derivatives of its first `count` arguments.
static Arrays derivedFrom(ir::KernelOp of, StringRef attribute, size_t count,
                          const Arrays &arrays) {
  Arrays result(count);
  for (size_t k = 0; k < count; ++k)
    if (auto at = argumentWith(of, attribute, k))
      result[k] = arrays[*at];
  return result;
}

/// The tangent along `other` of the tangent along `first`.
std::optional<Arrays> Checker::forwardTwice(const Derived &forward,
                                            const Arrays &first,
                                            const Arrays &other) {
  ir::KernelOp once = forward.kernel;
  auto twice = forwardOf(once, allFloats(once));
  if (!twice)
    return std::nullopt;
  Memory memory = extended(before, once, first);
  Arrays directions = zerosLike(once, memory.arrays);
  for (size_t k = 0; k < other.size(); ++k)
    if (!other[k].bytes.empty())
      directions[k] = other[k];
  Memory all = extended(memory, twice->kernel, directions);
  auto report = launch(twice->launchable, all, Property::Second);
  expectPrimal(Property::Second, "memory after two tangents", all, after);
  size_t count = before.arrays.size();
  Arrays tangents =
      derivedFrom(once, ir::tangentOfAttr, count,
                  extraOf(all, twice->kernel, once.getNumArguments()));
  refuseWild(tangents, report);
  return tangents;
}

/// Tangents of the versions that `gradient` needs.
FailureOr<std::vector<Recorded>>
Checker::tangentsOfVersions(const Derived &gradient, const Arrays &direction) {
  if (gradient.info.versions.empty())
    return std::vector<Recorded>();
  ir::KernelOp recording =
      autodiff::recordVersions(kernel, gradient.info.versions);
  derivatives.push_back(recording);
  recording.setSymName("d" + std::to_string(derivatives.size()));
  auto forward = forwardOf(recording, allFloats(recording));
  if (!forward)
    return failure();
  Memory memory = extended(before, recording, {});
  Arrays directions = zerosLike(recording, memory.arrays);
  for (size_t k = 0; k < direction.size(); ++k)
    if (!direction[k].bytes.empty())
      directions[k] = direction[k];
  Memory all = extended(memory, forward->kernel, directions);
  launch(forward->launchable, all, Property::Second);
  Arrays tangents = extraOf(all, forward->kernel, recording.getNumArguments());
  std::vector<Recorded> recorded = versionsOf(memory, recording);
  for (unsigned k = 0, next = 0; k < recording.getNumArguments(); ++k)
    if (recording.getArgAttr(k, ir::versionOfAttr))
      recorded[next++].array = tangents[k];
  return recorded;
}

/// Makes scratch arrays wide enough for tangents.
static void widenScratch(Memory &tangents, ir::KernelOp of) {
  for (unsigned k = 0; k < of.getNumArguments(); ++k) {
    auto type = dyn_cast<ir::ArrayType>(of.getArgumentTypes()[k]);
    if (!type || !of.getArgAttr(k, ir::scratchOfAttr))
      continue;
    tangents.arrays[k] =
        makeArray(type.getDerivative(), tangents.arrays[k].extents);
    fillWithGarbage(tangents.arrays[k], type.getElementType());
  }
}

/// Tangents of the adjoints for constant `weights`.
std::optional<Arrays> Checker::forwardOverReverse(const Derived &forward,
                                                  const Derived &gradient,
                                                  const Arrays &weights,
                                                  const Arrays &direction) {
  ir::KernelOp once = gradient.kernel;
  auto twice = forwardOf(once, allFloats(once));
  auto ofVersions = tangentsOfVersions(gradient, direction);
  if (!twice || failed(ofVersions))
    return std::nullopt;
  Memory memory = extended(after, once, weights, versions);
  // Tangents as a launch of the tangent kernel has left them; garbage for
  // scratch arrays.
  Memory tangents =
      extended({along(forward, before, direction), before.scalars}, once,
               zerosLike(kernel, before.arrays), *ofVersions);
  widenScratch(tangents, once);
  Memory all = extended(memory, twice->kernel, tangents.arrays);
  auto report = launch(twice->launchable, all, Property::Second);
  size_t count = before.arrays.size();
  expectAdjoints(Property::Second,
                 derivedFrom(once, ir::adjointOfAttr, count, all.arrays));
  Arrays second =
      derivedFrom(once, ir::adjointOfAttr, count,
                  extraOf(all, twice->kernel, once.getNumArguments()));
  refuseWild(second, report);
  return second;
}

/// w (D^2 f) d e by forward over forward and by forward over reverse.
void Checker::second(const Derived &forward, const Derived &gradient,
                     const Arrays &direction, const Arrays &weights) {
  Arrays other = randomLike(kernel, before, allFloats(kernel), random);
  for (size_t k = 0; k < other.size(); ++k)
    if (!argumentWith(forward.kernel, ir::tangentOfAttr, k))
      other[k] = {};
  auto up = forwardTwice(forward, direction, other);
  auto down = forwardOverReverse(forward, gradient, weights, other);
  if (!up || !down)
    return;
  result.second = true;
  Dot ofForward = dot(kernel, *up, weights),
      ofReverse = dot(kernel, *down, direction);
  double allowed =
      10 * tolerance() * (1 + ofForward.magnitude + ofReverse.magnitude);
  if (!(std::abs(ofForward.sum - ofReverse.sum) <= allowed))
    throw Mismatch{Property::Second, "forward over reverse " +
                                         numberText(ofReverse.sum) +
                                         " against forward over forward " +
                                         numberText(ofForward.sum)};
  if (wanted.has(Property::SecondDifferences) && !single)
    gradientDifferences(gradient, weights, other, *down);
}

//===-- Curves ------------------------------------------------------------===//

/// The second derivative along a straight line, in one pass and in two.
void Checker::curves(const Derived &forward, const Arrays &direction) {
  auto curve = forwardOf(kernel, allFloats(kernel), {.order = 2});
  auto nested = forwardTwice(forward, direction, direction);
  if (!curve || !nested)
    return;
  Memory memory = before;
  std::vector<unsigned> origins;
  size_t count = before.arrays.size();
  ir::KernelOp of = curve->kernel;
  for (unsigned k = count; k < of.getNumArguments(); ++k) {
    auto origin = of.getArgAttrOfType<IntegerAttr>(k, ir::tangentOfAttr);
    size_t like = size_t(origin.getInt());
    bool isFirst = like < count;
    origins.push_back(isFirst ? like : origins[like - count]);
    Arrays zeros = zerosLike(kernel, before.arrays);
    memory.arrays.push_back(isFirst ? direction[like] : zeros[origins.back()]);
    memory.scalars.emplace_back();
  }
  auto report = launch(curve->launchable, memory, Property::Curves);
  expectPrimal(Property::Curves, "memory after a curve", memory, after);
  Arrays second(count);
  for (unsigned k = count; k < of.getNumArguments(); ++k)
    second[origins[k - count]] = memory.arrays[k]; // the last one is of order 2
  refuseWild(second, report);
  std::string text = difference(kernel, second, *nested, 10 * tolerance());
  if (!text.empty())
    throw Mismatch{Property::Curves, "the second derivative of " + text};
}

/// Tangents along two directions at once and one by one.
void Checker::directions(const Derived &forward, ArrayRef<bool> active) {
  auto both = forwardOf(kernel, active, {.directions = 2});
  if (!both)
    return;
  Arrays one = randomLike(kernel, before, active, random),
         other = randomLike(kernel, before, active, random);
  size_t count = before.arrays.size();
  Memory memory = before;
  ir::KernelOp of = both->kernel;
  std::vector<unsigned> origins;
  for (unsigned k = count; k < of.getNumArguments(); ++k) {
    auto origin = of.getArgAttrOfType<IntegerAttr>(k, ir::tangentOfAttr);
    origins.push_back(unsigned(origin.getInt()));
    interpreter::HostArray pair = one[origins.back()];
    llvm::append_range(pair.bytes, other[origins.back()].bytes);
    pair.extents.insert(pair.extents.begin(), 2);
    memory.arrays.push_back(std::move(pair));
    memory.scalars.emplace_back();
  }
  launch(both->launchable, memory, Property::Curves);
  Arrays expected[] = {along(forward, before, one),
                       along(forward, before, other)};
  for (size_t d : {0, 1}) {
    Arrays tangents(count);
    for (unsigned k = count; k < of.getNumArguments(); ++k) {
      tangents[origins[k - count]] = one[origins[k - count]];
      auto &bytes = tangents[origins[k - count]].bytes;
      std::copy_n(memory.arrays[k].bytes.begin() + long(d * bytes.size()),
                  bytes.size(), bytes.begin());
    }
    std::string text = difference(kernel, tangents, expected[d], tolerance());
    if (!text.empty())
      throw Mismatch{Property::Curves, "along one of two directions, " + text};
  }
}

} // namespace costate::fuzz
