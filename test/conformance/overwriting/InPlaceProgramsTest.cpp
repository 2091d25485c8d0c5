/// Algorithms as they are usually written, in place: each overwrites its input
/// many times. Their gradients are known in closed form.

#include "Labels.h"
#include "conformance/ComplexStep.h"
#include "conformance/Gradients.h"

#include <algorithm>
#include <numeric>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;
using X = ArrayRef<double, 1>;

/// The gradients of one array from the state before the launch, and from a
/// recording, which must be the same to the last bit.
template <class... A>
Values gradientOf(Array<double> array, const Values &seeds,
                  const Kernel &kernel, const A &...arguments) {
  array.grad().from_host(seeds);
  kernel.grad(initial_state, arguments...);
  Values fromStart = array.grad().to_host();
  Tape tape;
  {
    auto recording = tape.record();
    kernel(arguments...);
  }
  array.grad().from_host(seeds);
  tape.backward();
  EXPECT_EQ(array.grad().to_host(), fromStart);
  return fromStart;
}

/// Each element gets the weight of the place that it is sorted to.
TEST(InPlacePrograms, SortingPermutesTheGradient) {
  Kernel sort = kernel("sort", [](ArrayRef<double, 2> x) {
    parallel(x.size(0), [&](Index row) {
      Var<bool> swapped = true;
      WHILE (swapped) {
        swapped = false;
        FOR (i, 0, x.size(1) - 1) {
          IF (x(row, i) > x(row, i + 1)) {
            Expr<double> larger = x(row, i);
            x(row, i) = x(row, i + 1);
            x(row, i + 1) = larger;
            swapped = true;
          }
        }
      }
    });
  });
  constexpr int rows = 5, columns = 9;
  Values values = randomValues(rows * columns, -1, 1),
         weights = randomValues(values.size(), 0, 1, 2);
  Values want(values.size());
  for (int row = 0; row < rows; ++row) {
    std::vector<int> order(columns);
    std::iota(order.begin(), order.end(), row * columns);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return values[a] < values[b]; });
    for (int i = 0; i < columns; ++i)
      want[order[i]] = weights[row * columns + i];
  }
  auto x = active(values, {rows, columns});
  EXPECT_EQ(gradientOf(x, weights, sort, x), want);
  Values sorted = x.to_host();
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.begin() + columns));
}

/// The logarithm of a determinant has the inverse for its gradient.
TEST(InPlacePrograms, EliminationHasTheInverseForItsGradient) {
  Kernel eliminate =
      kernel("eliminate", [](ArrayRef<double, 3> a, X logarithm) {
        parallel(a.size(0), [&](Index b) {
          Index n = a.size(1);
          FOR (k, 0, n) {
            FOR (i, k + 1, n) {
              a(b, i, k) = a(b, i, k) / a(b, k, k);
              FOR (j, k + 1, n) {
                a(b, i, j) = a(b, i, j) - a(b, i, k) * a(b, k, j);
              }
            }
            logarithm(b) += log(abs(a(b, k, k)));
          }
        });
      });
  constexpr int batch = 3, n = 6;
  Values values = randomValues(batch * n * n, -1, 1);
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < n; ++i)
      values[(b * n + i) * n + i] += b == 1 ? -3 : 3;
  auto a = active(values, {batch, n, n});
  auto logarithm = active(Values(batch, 0.0));
  logarithm.grad().fill(1);
  Values gradient =
      gradientOf(a, Values(values.size(), 0.0), eliminate, a, logarithm);
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        double product = 0; // of row i of the matrix and row j of the gradient
        for (int k = 0; k < n; ++k)
          product +=
              values[(b * n + i) * n + k] * gradient[(b * n + j) * n + k];
        EXPECT_NEAR(product, i == j, 1e-12);
      }
}

/// A linear map: no value is needed, so a gradient by hand is right as well.
TEST(InPlacePrograms, AFourierTransformHasItsAdjointForItsGradient) {
  static constexpr int bits = 5, n = 1 << bits;
  Kernel fft = kernel("fft", [](X re, X im) {
    FOR (level, 0, bits) {
      Index half = Index(1) << level;
      FOR (pair, 0, n / 2) {
        Index k = pair % half, i = 2 * (pair - k) + k, j = i + half;
        Expr<double> angle = -M_PI * cast<double>(k) / cast<double>(half);
        Expr<double> c = cos(angle), s = sin(angle);
        Expr<double> x = re(j) * c - im(j) * s, y = re(j) * s + im(j) * c;
        Expr<double> u = re(i), v = im(i);
        re(j) = u - x;
        im(j) = v - y;
        re(i) = u + x;
        im(i) = v + y;
      }
    }
  });
  Values weights = randomValues(n, -1, 1, 3), want(n);
  for (int t = 0; t < n; ++t) {
    int reversed = 0; // the transform takes its input in this order
    for (int bit = 0; bit < bits; ++bit)
      reversed |= (t >> bit & 1) << (bits - 1 - bit);
    for (int f = 0; f < n; ++f)
      want[t] += weights[f] * std::cos(2 * M_PI * reversed * f / n);
  }
  auto re = active(randomValues(n, -1, 1)), im = active(Values(n, 0.0));
  re.grad().from_host(weights);
  fft.grad(re, im);
  expectNear(re.grad().to_host(), want, 1e-12);
}

/// Sweeps over every second element, which read the others.
TEST(InPlacePrograms, RedAndBlackSweepsSeeTheirVersions) {
  constexpr int n = 12, sweeps = 3;
  Kernel relax = kernel("relax", [](X u, X f) {
    for (int sweep = 0; sweep < 2 * sweeps; ++sweep)
      parallel(u.size() / 2 - 1, [&](Index k) {
        Index i = 2 * k + 1 + sweep % 2;
        u(i) = 0.5 * u(i) + 0.25 * (u(i - 1) + u(i + 1)) - f(i) * u(i) * u(i);
      });
  });
  Values start = randomValues(n, -1, 1), forces = randomValues(n, 0, 0.2, 9),
         weights = randomValues(n, -1, 1, 4);
  Values all = start;
  all.insert(all.end(), forces.begin(), forces.end());
  Values want = complexStep(
      [&](std::vector<Complex> x) {
        for (int sweep = 0; sweep < 2 * sweeps; ++sweep)
          for (int k = 0; k < n / 2 - 1; ++k) {
            int i = 2 * k + 1 + sweep % 2;
            x[i] = 0.5 * x[i] + 0.25 * (x[i - 1] + x[i + 1]) -
                   x[n + i] * x[i] * x[i];
          }
        Complex sum = 0;
        for (int i = 0; i < n; ++i)
          sum += weights[i] * x[i];
        return sum;
      },
      all);
  auto u = active(start), f = active(forces);
  Values gradient = gradientOf(u, weights, relax, u, f);
  expectNear(gradient, Values(want.begin(), want.begin() + n), 1e-12);
  f.grad().fill(0);
  u.from_host(start);
  u.grad().from_host(weights);
  relax.grad(initial_state, u, f);
  expectNear(f.grad().to_host(), Values(want.begin() + n, want.end()), 1e-12);
}

/// Particles put their momentum on a grid and take velocities from it, step by
/// step, on the same arrays.
TEST(InPlacePrograms, ParticlesAndTheirGridAreOverwrittenInEveryStep) {
  constexpr int count = 7, cells = 6, steps = 12;
  Kernel clear = kernel("clear", [](X mass, X momentum) {
    parallel(mass.size(), [&](Index c) {
      mass(c) = 0.0;
      momentum(c) = 0.0;
    });
  });
  Kernel scatter = kernel("scatter", [](X x, X v, X mass, X momentum) {
    parallel(x.size(), [&](Index p) {
      Index c = clamp(cast<int64_t>(x(p)), Index(0), mass.size() - 2);
      Expr<double> w = x(p) - cast<double>(c);
      mass(c) += 1.0 - w;
      mass(c + 1) += w;
      momentum(c) += (1.0 - w) * v(p);
      momentum(c + 1) += w * v(p);
    });
  });
  Kernel push = kernel("push", [](X mass, X momentum) {
    parallel(mass.size(), [&](Index c) {
      IF (mass(c) > 0) {
        momentum(c) = momentum(c) / mass(c) - 0.02;
        IF ((c == 0) | (c == mass.size() - 1)) {
          momentum(c) = 0.0;
        }
      }
    });
  });
  Kernel gather = kernel("gather", [](X x, X v, X momentum) {
    parallel(x.size(), [&](Index p) {
      Index c = clamp(cast<int64_t>(x(p)), Index(0), momentum.size() - 2);
      Expr<double> w = x(p) - cast<double>(c);
      v(p) = (1.0 - w) * momentum(c) + w * momentum(c + 1);
      x(p) = x(p) + 0.3 * v(p);
    });
  });
  Values places = randomValues(count, 1.5, 3.5),
         speeds = randomValues(count, -0.5, 0.5, 6);
  auto simulate = [&](const std::vector<Complex> &start) {
    std::vector<Complex> x(start.begin(), start.begin() + count),
        v(start.begin() + count, start.end());
    auto cellOf = [](Complex x) {
      return std::clamp(int(x.real()), 0, cells - 2);
    };
    for (int step = 0; step < steps; ++step) {
      std::vector<Complex> mass(cells), momentum(cells);
      for (int p = 0; p < count; ++p) {
        int c = cellOf(x[p]);
        Complex w = x[p] - double(c);
        mass[c] += 1.0 - w;
        mass[c + 1] += w;
        momentum[c] += (1.0 - w) * v[p];
        momentum[c + 1] += w * v[p];
      }
      for (int c = 0; c < cells; ++c)
        if (mass[c].real() > 0)
          momentum[c] =
              c == 0 || c == cells - 1 ? 0 : momentum[c] / mass[c] - 0.02;
      for (int p = 0; p < count; ++p) {
        int c = cellOf(x[p]);
        Complex w = x[p] - double(c);
        v[p] = (1.0 - w) * momentum[c] + w * momentum[c + 1];
        x[p] += 0.3 * v[p];
      }
    }
    Complex sum = 0;
    for (int p = 0; p < count; ++p)
      sum += x[p] * x[p];
    return sum;
  };
  Values start = places;
  start.insert(start.end(), speeds.begin(), speeds.end());
  Values want = complexStep(simulate, start);

  auto x = active(places), v = active(speeds);
  auto mass = active(Values(cells, 0.0)), momentum = active(Values(cells, 0.0));
  Array<double> loss = cpu().array<double>({}, grad);
  Kernel measure = kernel("measure", [](X x, ArrayRef<double, 0> loss) {
    parallel(x.size(), [&](Index p) { loss() += x(p) * x(p); });
  });
  Tape tape;
  {
    auto recording = tape.record();
    for (int step = 0; step < steps; ++step) {
      clear(mass, momentum);
      scatter(x, v, mass, momentum);
      push(mass, momentum);
      gather(x, v, momentum);
    }
    measure(x, loss);
  }
  EXPECT_NEAR(loss.to_host()[0], simulate({start.begin(), start.end()}).real(),
              1e-11);
  tape.backward(loss);
  expectNear(x.grad().to_host(), Values(want.begin(), want.begin() + count),
             1e-10);
  expectNear(v.grad().to_host(), Values(want.begin() + count, want.end()),
             1e-10);
}

} // namespace
