#include "costate/check_gradient.h"

#include "api/Checked.h"
#include "api/GradientProbe.h"
#include "api/GraphImpl.h"
#include "api/Recording.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

using namespace costate;
using namespace costate::api;
using namespace costate::detail;
using Entry = GradientCheck::Entry;

/// So many entries are looked at besides the one that a search finds.
static constexpr size_t sampleSize = 8;

namespace {
/// The derivatives along one direction, and how much they differ.
struct Comparison {
  double reverse = 0, forward = 0, difference = 0, step = 0;
  double forwardError = 0;
  double differenceError = std::numeric_limits<double>::infinity();
  /// How well differences resolve it: to their tolerance, to a tenth, not.
  enum { Not, Roughly, Well } resolution = Not;
};

/// How far the slope goes up or down within the smallest step for which
/// rounding lets differences tell, and, at the same rate, within the largest.
/// Where the slope itself is 0, errors are measured by these.
struct Bend {
  double least = 0, most = 0;
};

class Check {
public:
  explicit Check(const Call &call);
  GradientCheck run();

private:
  Comparison compare(const Direction &direction);
  std::vector<DifferenceQuotient> differences(const Direction &direction);
  Bend bendOf(const std::vector<DifferenceQuotient> &quotients) const;
  void compareDifferences(Comparison &comparison,
                          const std::vector<DifferenceQuotient> &quotients,
                          double scale);
  bool isGood(const Comparison &comparison) const;

  /// A place in the gradient.
  struct Place {
    size_t input, element;
  };
  size_t count() const;
  Place placeOf(size_t number) const;
  Direction part(size_t begin, size_t end) const;
  size_t search(const std::function<double(const Direction &)> &error) const;
  size_t searchWorst(const Comparison &along);
  std::set<size_t> chooseEntries(const Comparison &along);
  Entry entryAt(size_t number);
  double badness(const Entry &entry) const;

  const Call call;
  GradientProbe probe;
  Direction gradient; ///< by reverse mode
  double forwardTolerance, differenceTolerance;
};
} // namespace

Check::Check(const Call &call)
    : call(call), probe(call), forwardTolerance(probe.isSingle() ? 1e-3 : 1e-9),
      differenceTolerance(probe.isSingle() ? 2e-2 : 1e-5) {}

//===-- One direction -----------------------------------------------------===//

std::vector<DifferenceQuotient> Check::differences(const Direction &direction) {
  const double first = probe.isSingle() ? 1e-1 : 1e-2;
  const double last = probe.isSingle() ? 1e-3 : 1e-7;
  std::vector<DifferenceQuotient> quotients;
  for (double relative = first; relative > 0.9 * last; relative /= 10)
    quotients.push_back(
        probe.difference(direction, relative * std::max(probe.size(), 1e-3)));
  return quotients;
}

Bend Check::bendOf(const std::vector<DifferenceQuotient> &quotients) const {
  const double infinity = std::numeric_limits<double>::infinity();
  Bend bend{infinity, infinity};
  for (const DifferenceQuotient &found : quotients) {
    if (!(found.rounding <= differenceTolerance * found.bend))
      continue;
    double rate = found.bend / found.step;
    bend.least = std::min(bend.least, found.bend);
    bend.most = std::min(bend.most, rate * quotients.front().step);
  }
  return std::isinf(bend.least) ? Bend() : bend;
}

/// Several steps: large ones bend, small ones round. The best counts, of those
/// that rounding disturbs least.
void Check::compareDifferences(Comparison &comparison,
                               const std::vector<DifferenceQuotient> &quotients,
                               double scale) {
  for (const DifferenceQuotient &found : quotients) {
    double distance = std::fabs(comparison.reverse - found.value);
    double error = std::max(0.0, distance - found.rounding) / scale;
    auto resolution = found.rounding <= differenceTolerance * scale
                          ? Comparison::Well
                      : found.rounding <= 0.1 * scale ? Comparison::Roughly
                                                      : Comparison::Not;
    bool better = resolution == comparison.resolution
                      ? error < comparison.differenceError
                      : resolution > comparison.resolution;
    if (!better && comparison.step != 0)
      continue;
    comparison.difference = found.value;
    comparison.step = found.step;
    comparison.differenceError = error;
    comparison.resolution = resolution;
  }
}

Comparison Check::compare(const Direction &direction) {
  Comparison comparison;
  ForwardDerivative forward = probe.forward(direction);
  std::vector<DifferenceQuotient> quotients = differences(direction);
  Bend bend = bendOf(quotients);
  comparison.reverse = dot(gradient, direction);
  comparison.forward = forward.value;
  double scale =
      std::max({std::fabs(comparison.reverse), std::fabs(comparison.forward),
                0.01 * forward.magnitude, 1e-300});
  comparison.forwardError = std::fabs(comparison.reverse - comparison.forward) /
                            std::max(scale, bend.most);
  compareDifferences(comparison, quotients, std::max(scale, bend.least));
  return comparison;
}

/// NaN is not good.
bool Check::isGood(const Comparison &comparison) const {
  return comparison.forwardError <= forwardTolerance &&
         comparison.differenceError <= differenceTolerance;
}

//===-- Single entries ----------------------------------------------------===//

size_t Check::count() const {
  size_t sum = 0;
  for (const ProbeInput &input : probe.inputs())
    sum += input.read ? input.start.size() : 0;
  return sum;
}

Check::Place Check::placeOf(size_t number) const {
  size_t input = 0;
  for (;; ++input) {
    const ProbeInput &one = probe.inputs()[input];
    if (!one.read)
      continue;
    if (number < one.start.size())
      return {input, number};
    number -= one.start.size();
  }
}

/// A 1 or -1 for each entry in between, which differ so that errors do not
/// cancel.
Direction Check::part(size_t begin, size_t end) const {
  Direction direction = probe.zero();
  for (size_t number = begin; number < end; ++number) {
    Place place = placeOf(number);
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
    direction[place.input][place.element] = mixed >> 40 & 1 ? 1 : -1;
  }
  return direction;
}

static double sizeOf(double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity()
                           : std::fabs(error);
}

/// Follows the larger half of an error that adds up over parts.
size_t
Check::search(const std::function<double(const Direction &)> &error) const {
  size_t begin = 0, end = count();
  double all = error(part(begin, end));
  while (end - begin > 1) {
    size_t middle = begin + (end - begin) / 2;
    double left = error(part(begin, middle)), right = all - left;
    bool goLeft = sizeOf(left) >= sizeOf(right);
    all = goLeft ? left : right;
    (goLeft ? end : begin) = middle;
  }
  return begin;
}

size_t Check::searchWorst(const Comparison &along) {
  if (!(along.forwardError <= forwardTolerance))
    return search([&](const Direction &direction) {
      return dot(gradient, direction) - probe.forward(direction).value;
    });
  // The same change of an entry in every part: jumps add up as well.
  double step = along.step / std::sqrt(static_cast<double>(count()));
  return search([&](const Direction &direction) {
    return dot(gradient, direction) - probe.difference(direction, step).value;
  });
}

std::set<size_t> Check::chooseEntries(const Comparison &along) {
  std::set<size_t> chosen;
  size_t all = count();
  std::mt19937_64 random(all);
  while (chosen.size() < std::min(all, sampleSize))
    chosen.insert(all <= sampleSize ? chosen.size() : random() % all);
  if (all > sampleSize && !isGood(along))
    chosen.insert(searchWorst(along));
  return chosen;
}

static std::vector<int64_t> indexOf(int64_t element,
                                    const std::vector<int64_t> &extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t d = extents.size(); d-- > 0; element /= extents[d])
    index[d] = element % extents[d];
  return index;
}

Entry Check::entryAt(size_t number) {
  Place place = placeOf(number);
  const ProbeInput &input = probe.inputs()[place.input];
  Direction unit = probe.zero();
  unit[place.input][place.element] = 1;
  Comparison comparison = compare(unit);
  return {static_cast<int>(input.argument + 1),
          nameOf(*call.kernel, input.argument),
          indexOf(static_cast<int64_t>(place.element),
                  call.arguments[input.argument].array->extents),
          comparison.reverse,
          comparison.forward,
          comparison.difference,
          comparison.forwardError,
          comparison.differenceError};
}

/// Above 1 for an entry out of tolerance.
double Check::badness(const Entry &entry) const {
  return std::max(sizeOf(entry.forward_error / forwardTolerance),
                  sizeOf(entry.difference_error / differenceTolerance));
}

GradientCheck Check::run() {
  gradient = probe.reverse();
  Comparison along = compare(probe.randomUnit());
  GradientCheck check;
  check.kernel = call.kernel->program->name();
  check.reverse = along.reverse;
  check.forward = along.forward;
  check.difference = along.difference;
  check.step = along.step;
  check.forward_error = along.forwardError;
  check.difference_error = along.differenceError;
  check.forward_tolerance = forwardTolerance;
  check.difference_tolerance = differenceTolerance;
  check.differences_tell = along.resolution != Comparison::Not;
  check.ok = isGood(along);
  check.all_entries = count();
  for (size_t number : chooseEntries(along)) {
    Entry entry = entryAt(number);
    check.ok &= badness(entry) <= 1;
    if (check.entries++ == 0 || badness(entry) > badness(check.worst))
      check.worst = std::move(entry);
  }
  return check;
}

GradientCheck detail::check_gradient(const Kernel &kernel,
                                     std::span<const ArgumentValue> arguments) {
  Chain chain = kernel.derivation();
  if (chain.mode != Mode::Primal || chain.order > 0)
    raise(ErrorCode::BadArgument,
          kernel.shared()->title() +
              ": check_gradient takes a kernel, not a derivative of one");
  requireNoCapture("check a gradient");
  RecordingPause pause;
  return Check(detail::bind(kernel.shared(), arguments)).run();
}
