#pragma once
/// Loops whose gradients need tapes, with gradients in closed form or from
/// plain C++: what the benchmarks of tapes measure and their test checks.
///
/// The same works, by hand in CUDA: cuda/tape_protocol.cu.

#include "costate/costate.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace costate::bench {

/// What one iteration of a loop computes.
/// - `Fast`, `Accurate`: v <- 0.9 sin(v) + 0.3, with `fast_math` or without. It
///   contracts: after some hundred iterations its gradient is 0 whatever was
///   saved.
/// - `Proof`: a chaotic map that says its derivative is g(v')/g(v), with g(v) =
///   1 + v^2. So a gradient is g(last)/g(first) however deep the loop is, and
///   no record can be missing or another's. It has no functions: bits are the
///   same on all devices.
enum class TapeBody { Fast, Accurate, Proof };
const char *nameOf(TapeBody body);

/// d y(i) / d x(i), and d y(i) / d scale(i) where there is a scale.
struct ItemGradient {
  double x, scale = 0;
};

struct TapeWork {
  std::string name;
  TapeBody body;
  /// k(x, [scale,] [depth,] y [, iterations]): y(i) += what the loop makes of
  /// x(i).
  Kernel kernel;
  std::vector<float> x, scale;       ///< no scale: empty
  std::vector<int32_t> depth;        ///< empty: none
  std::optional<int32_t> iterations; ///< of all items
  /// Gradients of an item, of which any is right: a loop that ends where a
  /// value is small may make one iteration more or less in other arithmetic.
  std::function<std::vector<ItemGradient>(size_t)> expected;
};

/// All items make as many iterations.
TapeWork uniformWork(TapeBody body, size_t items, int32_t iterations);
/// The iterations of each item stand in an array: exponentially distributed
/// with mean 64, or below 32 and for one in a thousand about 2000.
TapeWork exponentialWork(TapeBody body, size_t items);
TapeWork rareWork(TapeBody body, size_t items);
/// 16 outer iterations with 0 to 15 inner ones each, by a hash.
TapeWork nestWork(TapeBody body, size_t items);
/// A fixed point: as many iterations as it takes.
TapeWork whileWork(TapeBody body, size_t items);

/// The arrays of a work on a device, or of its first items.
class BoundWork {
public:
  BoundWork(const TapeWork &work, const Device &device, size_t items);
  BoundWork(const TapeWork &work, const Device &device)
      : BoundWork(work, device, work.x.size()) {}

  void primal() const { launch(detail::Mode::Primal); }
  /// Adds to the gradients; what it reads stays as it is.
  void gradient() const { launch(detail::Mode::Gradient); }
  void clear() const;

  /// Of the last gradient launches since `clear`: by `x`, after it by `scale`.
  std::vector<float> gradients() const;

private:
  void launch(detail::Mode mode) const;

  Kernel kernel;
  Array<float> x, scale, y;
  Array<int32_t> depth;
  std::optional<int32_t> iterations;
};

/// max|Δ| / max(1, max|reference|) over a thousand of the items.
double relativeError(const TapeWork &work, const std::vector<float> &gradients);

} // namespace costate::bench
