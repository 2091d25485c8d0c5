#include "TapeWorks.h"

#include "costate/syntax.h"

#include <algorithm>
#include <cmath>

namespace costate::bench {
namespace {

constexpr int outerIterations = 16;
constexpr int maxTripCount = 4000;
constexpr float tolerance = 1e-5f; ///< a fixed point changes by less
constexpr float leaves = 0.2585f;  ///< below it a chaotic loop ends
constexpr float share = 1e-3f;     ///< of `scale` in a chaotic iteration

//===-- The iterations, traced --------------------------------------------===//

template <class V> auto g(const V &v) { return 1.0f + v * v; }

/// 3.7 v (1 - v)
template <class V> auto chaos(const V &v) { return 3.7f * v * (1.0f - v); }
template <class V> auto mixed(const V &v) { return 0.5f * (v * v) + 0.4f; }
/// Of the chaotic map: nothing that could be fused, on any device.
template <class V> auto shrunk(const V &v) { return 0.95f * v; }

Expr<float> chaoticIteration(Expr<float> v) {
  return custom_derivative(
      [](Expr<float> v) -> Expr<float> { return chaos(v); },
      [](Expr<float> v, Expr<float>) -> Expr<float> {
        return g(chaos(v)) / g(v); // so that v alone is saved
      })(v);
}

/// Says that it depends on `scale` as well.
Expr<float> chaoticIteration(Expr<float> v, Expr<float> scale) {
  return custom_derivative(
      [](Expr<float> v, Expr<float>) -> Expr<float> { return chaos(v); },
      [](Expr<float> v, Expr<float>, Expr<float>) {
        Expr<float> next = g(chaos(v));
        return std::tuple<Expr<float>, Expr<float>>(next / g(v), share * next);
      })(v, scale);
}

Expr<float> outerIteration(TapeBody body, Expr<float> v) {
  if (body != TapeBody::Proof)
    return mixed(v);
  return custom_derivative(
      [](Expr<float> v) -> Expr<float> { return shrunk(v); },
      [](Expr<float> v, Expr<float>) -> Expr<float> {
        return g(shrunk(v)) / g(v);
      })(v);
}

Expr<float> iteration(TapeBody body, Expr<float> v) {
  if (body == TapeBody::Proof)
    return chaoticIteration(v);
  return 0.9f * sin(v) + 0.3f;
}

/// How many inner iterations item i makes in outer iteration k.
Expr<int32_t> innerIterations(Index i, Index k) {
  Expr<uint32_t> h =
      cast<uint32_t>(i) * 2654435761u + cast<uint32_t>(k) * 40503u;
  h = (h ^ (h >> 15u)) * 2246822519u;
  return cast<int32_t>((h ^ (h >> 13u)) % 16u);
}

KernelOptions optionsFor(TapeBody body) {
  return {.fast_math = body == TapeBody::Fast};
}

//===-- The same in plain C++ ---------------------------------------------===//

uint32_t innerIterationsOf(uint32_t i, uint32_t k) {
  uint32_t h = i * 2654435761u + k * 40503u;
  h = (h ^ (h >> 15)) * 2246822519u;
  return (h ^ (h >> 13)) % 16;
}

double chaoticGradient(float first, float last) {
  return double(g(double(last))) / g(double(first));
}

/// d v / d v0 after some iterations; advances `v`.
double contracting(double &v, int iterations) {
  double derivative = 1;
  for (int k = 0; k < iterations; ++k) {
    derivative *= 0.9 * std::cos(v);
    v = 0.9 * std::sin(v) + 0.3;
  }
  return derivative;
}

ItemGradient iterationsGradient(TapeBody body, float x, int iterations) {
  if (body != TapeBody::Proof) {
    double v = x;
    return {contracting(v, iterations)};
  }
  float v = x;
  for (int k = 0; k < iterations; ++k)
    v = chaos(v);
  return {chaoticGradient(x, v)};
}

ItemGradient nestGradient(TapeBody body, float x, uint32_t item) {
  double v = x, derivative = 1;
  float w = x;
  for (uint32_t k = 0; k < outerIterations; ++k) {
    int inner = innerIterationsOf(item, k);
    derivative *= contracting(v, inner);
    derivative *= v;
    v = mixed(v);
    for (int j = 0; j < inner; ++j)
      w = chaos(w);
    w = shrunk(w);
  }
  return {body == TapeBody::Proof ? chaoticGradient(x, w) : derivative};
}

int fixedPointIterations(float x, float scale) {
  float v = x, change = 1;
  int iterations = 0;
  while (iterations < maxTripCount && !(change < tolerance)) {
    float w = scale * std::sin(v);
    change = std::fabs(w - v);
    v = w;
    ++iterations;
  }
  return iterations;
}

ItemGradient fixedPointGradient(float x, float scale, int iterations) {
  double v = x, byX = 1, byScale = 0;
  for (int k = 0; k < iterations; ++k) {
    byScale = byScale * scale * std::cos(v) + std::sin(v);
    byX *= scale * std::cos(v);
    v = scale * std::sin(v);
  }
  return {byX, byScale};
}

ItemGradient chaoticLoopGradient(float x) {
  float v = x;
  int iterations = 0;
  bool goesOn = true;
  while (iterations < maxTripCount && goesOn) {
    v = chaos(v);
    goesOn = !(v < leaves);
    ++iterations;
  }
  return {chaoticGradient(x, v), double(share) * iterations * g(double(v))};
}

//===-- Their inputs ------------------------------------------------------===//

/// In (0, 1), as the yardstick's.
double unit(uint32_t i) {
  i = (i + 1) * 2654435761u;
  i = (i ^ (i >> 15)) * 2246822519u;
  i = (i ^ (i >> 13)) * 3266489917u;
  return ((i ^ (i >> 16)) + 0.5) / 4294967296.0;
}

template <class T, class F> std::vector<T> filled(size_t items, F f) {
  std::vector<T> values(items);
  for (size_t i = 0; i < items; ++i)
    values[i] = static_cast<T>(f(static_cast<uint32_t>(i)));
  return values;
}

/// The chaotic map needs numbers below 1.
std::vector<float> inputs(TapeBody body, size_t items) {
  float most = body == TapeBody::Proof ? 0.9f : 1.0f;
  return filled<float>(items, [&](uint32_t i) {
    return most * (0.001f * float(i % 997) + 0.01f);
  });
}

TapeWork raggedWork(const char *name, TapeBody body,
                    std::vector<int32_t> depth) {
  Kernel k = kernel(
      "ragged",
      [=](ArrayRef<float, 1> x, ArrayRef<int32_t, 1> n, ArrayRef<float, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<float> v = x(i);
          FOR (iterationIndex, 0, n(i)) {
            v = iteration(body, v);
          }
          y(i) += v;
        });
      },
      optionsFor(body));
  TapeWork work{name, body, k, inputs(body, depth.size()), {}, depth, {}, {}};
  work.expected = [body, x = work.x, depth](size_t i) {
    return std::vector{iterationsGradient(body, x[i], depth[i])};
  };
  return work;
}

} // namespace

const char *nameOf(TapeBody body) {
  static constexpr const char *names[] = {"fast", "accurate", "proof"};
  return names[static_cast<int>(body)];
}

TapeWork uniformWork(TapeBody body, size_t items, int32_t iterations) {
  Kernel k = kernel(
      "uniform",
      [=](ArrayRef<float, 1> x, ArrayRef<float, 1> y, Scalar<int32_t> n) {
        parallel(x.size(), [&](Index i) {
          Var<float> v = x(i);
          FOR (iterationIndex, 0, n) {
            v = iteration(body, v);
          }
          y(i) += v;
        });
      },
      optionsFor(body));
  TapeWork work{std::to_string(iterations),
                body,
                k,
                inputs(body, items),
                {},
                {},
                iterations,
                {}};
  work.expected = [body, x = work.x, iterations](size_t i) {
    return std::vector{iterationsGradient(body, x[i], iterations)};
  };
  return work;
}

TapeWork exponentialWork(TapeBody body, size_t items) {
  return raggedWork("exponential", body, filled<int32_t>(items, [](uint32_t i) {
                      return std::min(4000, int(-64 * std::log(unit(i + 99))));
                    }));
}

TapeWork rareWork(TapeBody body, size_t items) {
  return raggedWork("rare", body, filled<int32_t>(items, [](uint32_t i) {
                      uint32_t r = uint32_t(unit(i + 12345) * 1e6);
                      return r < 1000 ? 2000 + r % 96 : r % 32;
                    }));
}

TapeWork nestWork(TapeBody body, size_t items) {
  Kernel k = kernel(
      "nest",
      [=](ArrayRef<float, 1> x, ArrayRef<float, 1> y, Scalar<int32_t> outer) {
        parallel(x.size(), [&](Index i) {
          Var<float> v = x(i);
          FOR (m, 0, outer) {
            FOR (j, 0, innerIterations(i, m)) {
              v = iteration(body, v);
            }
            v = outerIteration(body, v);
          }
          y(i) += v;
        });
      },
      optionsFor(body));
  TapeWork work{"nest",          body, k, inputs(body, items), {}, {},
                outerIterations, {}};
  work.expected = [body, x = work.x](size_t i) {
    return std::vector{nestGradient(body, x[i], static_cast<uint32_t>(i))};
  };
  return work;
}

TapeWork whileWork(TapeBody body, size_t items) {
  bool isChaotic = body == TapeBody::Proof;
  Kernel k = kernel(
      "while",
      [=](ArrayRef<float, 1> x, ArrayRef<float, 1> scale,
          ArrayRef<float, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<float> v = x(i);
          Expr<float> s = scale(i);
          Var<int32_t> iterations = 0;
          WHILE (iterations < maxTripCount) {
            Expr<float> w = isChaotic ? chaoticIteration(v, s) : s * sin(v);
            Expr<float> change = abs(w - v);
            v = w;
            iterations += 1;
            IF (isChaotic ? w < leaves : change < tolerance) {
              BREAK;
            }
          }
          y(i) += v;
        });
      },
      optionsFor(body));
  TapeWork work{"while", body, k, inputs(body, items), {}, {}, {}, {}};
  work.scale = filled<float>(items, [](uint32_t i) {
    double u = 0.9 * unit(i / 64 + 7) + 0.1 * unit(i);
    return 1 - std::exp2(-7 * u * u * u - 1);
  });
  work.expected = [isChaotic, x = work.x, scale = work.scale](size_t i) {
    std::vector<ItemGradient> any;
    if (isChaotic)
      return std::vector{chaoticLoopGradient(x[i])};
    int iterations = fixedPointIterations(x[i], scale[i]);
    for (int t = std::max(1, iterations - 1); t <= iterations + 1; ++t)
      any.push_back(fixedPointGradient(x[i], scale[i], t));
    return any;
  };
  return work;
}

//===-- On a device -------------------------------------------------------===//

BoundWork::BoundWork(const TapeWork &work, const Device &device, size_t items)
    : kernel(work.kernel), iterations(work.iterations) {
  auto place = [&](auto &array, const auto &values, Flags flags) {
    using T = typename std::remove_cvref_t<decltype(values)>::value_type;
    if (values.empty())
      return;
    array = device.array<T>({items}, flags);
    array.from_host(
        std::vector<T>(values.begin(), values.begin() + ptrdiff_t(items)));
  };
  place(x, work.x, grad);
  place(scale, work.scale, grad);
  place(depth, work.depth, none);
  y = device.array<float>({items}, grad);
  y.grad().fill(1);
}

void BoundWork::launch(detail::Mode mode) const {
  std::vector<detail::ArgumentValue> arguments{x};
  if (scale)
    arguments.emplace_back(scale);
  if (depth)
    arguments.emplace_back(depth);
  arguments.emplace_back(y);
  if (iterations)
    arguments.emplace_back(*iterations);
  kernel.launch_with(mode, arguments);
}

void BoundWork::clear() const {
  x.grad().fill(0);
  if (scale)
    scale.grad().fill(0);
}

std::vector<float> BoundWork::gradients() const {
  std::vector<float> all = x.grad().to_host();
  if (!scale)
    return all;
  std::vector<float> more = scale.grad().to_host();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

double relativeError(const TapeWork &work,
                     const std::vector<float> &gradients) {
  size_t items = work.x.size(), step = std::max<size_t>(1, items / 1000);
  double error = 0, largest = 1;
  for (size_t i = 0; i < items; i += step) {
    double least = INFINITY;
    for (const ItemGradient &wanted : work.expected(i)) {
      double off = std::fabs(gradients[i] - wanted.x);
      if (!work.scale.empty())
        off = std::max(off, std::fabs(gradients[items + i] - wanted.scale));
      least = std::min(least, off);
      largest =
          std::max({largest, std::fabs(wanted.x), std::fabs(wanted.scale)});
    }
    error = std::max(error, least);
  }
  return error / largest;
}

} // namespace costate::bench
