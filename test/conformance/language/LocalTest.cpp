/// Private arrays: overwritten at run-time indices, in loops and branches, with
/// derivatives by all modes.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <cmath>

COSTATE_LABEL("*.InsertionSort", sample);
COSTATE_LABEL("*.IndicesAreDifferences", sample);
COSTATE_LABEL("*.HornerOverATable", sample);
COSTATE_LABEL("*.Cholesky*", sample);
COSTATE_LABEL("*.AroundARange*", sample);

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;

/// Hessian-vector products of the sum of `y` by `k.gradient().jvp`, against
/// differences of `k.grad`.
void expectSecondOrder(const Kernel &k, Array<double> x, Array<double> y) {
  Values start = x.to_host(), startOfY = y.to_host();
  Values direction = randomValues(start.size(), -1, 1, 5);
  auto gradientAt = [&](double shift) {
    Values point = start;
    for (size_t i = 0; i < point.size(); ++i)
      point[i] += shift * direction[i];
    x.from_host(point);
    y.from_host(startOfY);
    k(x, y);
    x.grad().fill(0);
    y.grad().fill(1);
    k.grad(x, y);
    return x.grad().to_host();
  };
  auto slope = [&](double h) {
    Values above = gradientAt(h), below = gradientAt(-h);
    for (size_t i = 0; i < above.size(); ++i)
      above[i] = (above[i] - below[i]) / (2 * h);
    return above;
  };
  Values coarse = slope(2e-4), fine = slope(1e-4);
  x.from_host(start);
  y.from_host(startOfY);
  x.dual().from_host(direction);
  k.jvp(x, y);
  x.grad().fill(0);
  x.grad().dual().fill(0);
  y.grad().fill(1);
  y.grad().dual().fill(0);
  k.gradient().jvp(x, y);
  Values found = x.grad().dual().to_host();
  for (size_t i = 0; i < found.size(); ++i) {
    double expected = fine[i] + (fine[i] - coarse[i]) / 3;
    EXPECT_NEAR(found[i], expected, 1e-6 * std::max(1.0, std::abs(expected)))
        << "entry " << i;
  }
}

void expectAll(const Kernel &k, const Values &start, size_t outputs) {
  auto x = active<double>(start), y = active<double>(Values(outputs, 0.0));
  expectGradients({x}, {y}, k, x, y);
  expectSecondOrder(k, x, y);
}

/// d/dc_k of c_0 + c_1 t + ... is t^k.
TEST(Local, HornerOverATable) {
  Kernel k = kernel("horner", [](ArrayRef<double, 1> c, ArrayRef<double, 1> t,
                                 ArrayRef<double, 1> y) {
    parallel(t.size(), [&](Index i) {
      Local<double, 8> table;
      FOR (j, 0, c.size()) {
        table[j] = c[j];
      }
      Var<double> sum = 0.0;
      FOR (j, 0, c.size()) {
        sum = sum * t[i] + table[c.size() - 1 - j];
      }
      y[i] = sum;
    });
  });
  Values c = {0.5, -1.5, 2, 0.25, 1};
  auto coefficients = active<double>(c), t = active<double>({0.5, -2, 3}),
       y = active<double>({0, 0, 0});
  Values byC(5), byT;
  for (double at : t.to_host()) {
    double slope = 0;
    for (size_t n = 0; n < 5; ++n) {
      byC[n] += std::pow(at, n);
      slope += n ? double(n) * c[n] * std::pow(at, n - 1) : 0;
    }
    byT.push_back(slope);
  }
  expectClosedForm({coefficients, t}, {y}, {byC, byT}, k, coefficients, t, y);
}

/// The gradient of each place goes to the value that ends up there.
TEST(Local, InsertionSort) {
  Kernel k = kernel("sort", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size() / 6, [&](Index i) {
      Local<double, 6> a;
      FOR (n, 0, 6) {
        Var<double> v = x[6 * i + n];
        Var<int64_t> at = n;
        WHILE ((at > 0) & (a[at - 1] > v)) {
          a[at] = a[at - 1];
          at -= 1;
        }
        a[at] = v;
      }
      FOR (n, 0, 6) {
        y[6 * i + n] += cast<double>(n + 1) * a[n];
      }
    });
  });
  Values start = {3, 1, 2, 6, 5, 4, 0.5, 7, -1, 2.5, 2, 9};
  Values rank(12);
  for (size_t n = 0; n < 12; ++n)
    for (size_t m = n / 6 * 6; m < n / 6 * 6 + 6; ++m)
      rank[n] += start[m] <= start[n];
  auto x = active<double>(start), y = active<double>(Values(12, 0.0));
  expectClosedForm({x}, {y}, {rank}, k, x, y);
}

/// log det A = 2 sum log L_ii; its gradient is the inverse of A.
TEST(Local, CholeskyWithRunTimeSize) {
  Kernel k = kernel("cholesky", [](ArrayRef<double, 1> a, ArrayRef<double, 1> y,
                                   ArrayRef<int, 1> sizes) {
    parallel(y.size(), [&](Index i) {
      Local<double, 16> l;
      Index n = sizes[i];
      FOR (r, 0, n) {
        FOR (c, 0, r + 1) {
          Var<double> sum = a[16 * i + 4 * r + c];
          FOR (m, 0, c) {
            sum -= l[4 * r + m] * l[4 * c + m];
          }
          IF (r == c) {
            l[4 * r + c] = sqrt(sum);
          }
          ELSE { l[4 * r + c] = sum / l[4 * c + c]; }
        }
      }
      FOR (r, 0, n) {
        y[i] += 2.0 * log(l[4 * r + r]);
      }
    });
  });
  Values matrix(32);
  for (size_t i = 0; i < 2; ++i)
    for (size_t r = 0; r < 4; ++r)
      for (size_t c = 0; c < 4; ++c)
        matrix[16 * i + 4 * r + c] =
            r == c ? 4.0 + double(r + i) : 0.3 * double(r + c) - 0.5;
  auto a = active<double>(matrix), y = active<double>({0, 0});
  auto sizes = constant<int>({4, 3});
  expectGradients({a}, {y}, k, a, y, sizes);
}

/// A ring of three values that a loop with BREAK overwrites.
TEST(Local, RingInAWhileLoop) {
  Kernel k = kernel("ring", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Local<double, 3> ring;
      ring[0] = x[i];
      ring[1] = 0.5 * x[i];
      Var<int> t = 2;
      WHILE (t < 40) {
        ring[t % 3] = sin(ring[(t + 1) % 3]) + 0.7 * ring[(t + 2) % 3] * x[i];
        IF (ring[t % 3] * ring[t % 3] > 3.0) {
          BREAK;
        }
        IF (ring[t % 3] < 0.1) {
          t += 2;
          CONTINUE;
        }
        t += 1;
      }
      y[i] = ring[0] + 2.0 * ring[1] * ring[2];
    });
  });
  expectAll(k, {0.3, 0.9, 1.4, 2.1, -0.8}, 5);
}

/// Each iteration has an array of its own, which starts with zeros.
TEST(Local, DeclaredInALoop) {
  Kernel k =
      kernel("iterations", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(y.size(), [&](Index i) {
          Var<double> sum = x[i];
          FOR (t, 0, 5) {
            Local<double, 4> a;
            a[t % 4] = sum * x[(i + t) % x.size()];
            a[(t + 1) % 4] += a[t % 4] * a[t % 4];
            IF (t % 2 == 0) {
              a[t % 4] = 0.5;
            }
            FOR (j, 0, 4) {
              sum += 0.3 * sin(a[j]) * a[(j + 1) % 4];
            }
          }
          y[i] = sum;
        });
      });
  expectAll(k, {0.3, 0.9, 1.4, -0.7}, 4);
}

TEST(Local, DeclaredInABranchAndInNests) {
  Kernel k = kernel("nest", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Var<double> sum = 0.0;
      Local<double, 5> kept;
      FOR (t, 0, 3) {
        IF (x[i] > 0.5) {
          Local<double, 2> a;
          a[t % 2] = x[i] * x[i];
          Var<int> n = 0;
          WHILE (n < t + 1) {
            Local<double, 3> inner;
            inner = Local<double, 3>();
            inner[n % 3] = a[(n + t) % 2] + kept[t];
            a[n % 2] += exp(-inner[n % 3]) * x[i];
            kept[t + 1] += inner[n % 3] * a[n % 2];
            n += 1;
          }
          sum += a[0] * a[1];
        }
        ELSE { kept[t] = x[i] * kept[t] + 0.25 * x[i]; }
      }
      y[i] = sum + kept[1] * kept[2] + kept[3];
    });
  });
  expectAll(k, {0.3, 0.9, 1.4, -0.7, 0.6}, 5);
}

TEST(Local, InSerialCodeOnBothSidesOfARange) {
  Kernel k = kernel("serial", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    Local<double, 4> a;
    FOR (j, 0, 4) {
      a[j] = x[j] * x[j] + select(j > 0, 1.0, 0.0);
    }
    Var<double> scale = a[1] * a[2];
    parallel(x.size(), [&](Index i) { y[i] = sin(x[i]) * scale; });
    FOR (j, 0, 4) {
      a[(j + 1) % 4] = a[(j + 1) % 4] * a[j] * 0.5;
    }
    y[4] = a[0] + a[3] * scale;
  });
  expectAll(k, {0.3, 0.9, 1.4, -0.7}, 5);
}

/// Kept in the frame of a GPU, and zeros again in each iteration.
TEST(Local, AroundARangeInASerialLoop) {
  Kernel k = kernel("loop", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    Local<double, 3> sums;
    FOR (t, 0, 4) {
      Local<double, 2> a;
      a[t % 2] += x[t] * x[t];
      Var<double> b = a[0];
      parallel(x.size(), [&](Index i) { y[i] += b * x[i]; });
      a[(t + 1) % 2] += y[t];
      sums[t % 3] += a[0] * a[1];
    }
    y[0] = sums[0] + 2.0 * sums[1] + 3.0 * sums[2];
  });
  auto x = active<double>({1, 2, 3, 4}), y = active<double>({0, 0, 0, 0});
  x.dual().fill(0);
  x.dual().from_host({0, 0, 1, 0});
  y.dual().fill(0);
  k.jvp(x, y);
  // b = 1, 0, 9, 0; y = x, x, 10 x, 10 x after the four ranges
  EXPECT_EQ(y.to_host(), (Values{1 + 640 + 2 * 8 + 3 * 270, 20, 30, 40}));
  // by x[2]: y[2] = x2 + x2^3, y[3] = 4 + 4 x2^2, sums[2] = x2^2 (x2 + x2^3)
  EXPECT_EQ(y.dual().to_host(), (Values{16 * 24 + 3 * (27 + 405), 12, 28, 24}));
}

TEST(Local, SerialAfterAReturn) {
  Kernel k = kernel("leave", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    IF (x[0] > 5.0) {
      RETURN;
    }
    Local<double, 3> a;
    a[0] = x[0] * x[1];
    parallel(x.size(), [&](Index i) { y[i] = x[i] * x[i]; });
    a[1] = a[0] * a[0];
    IF (x[1] > 5.0) {
      RETURN;
    }
    y[0] = a[1] * x[0];
  });
  expectAll(k, {0.3, 0.9, 1.4, -0.7}, 4);
  expectAll(k, {0.3, 7, 1.4, -0.7}, 4);
  expectAll(k, {6, 7, 1.4, -0.7}, 4);
}

/// Indices that are computed, kept in private arrays, and overwritten.
TEST(Local, OfIntegersAndBools) {
  Kernel k = kernel("mixed", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Local<int64_t, 6> next;
      Local<bool, 6> seen;
      Local<double, 6> value;
      FOR (j, 0, 6) {
        next[j] = (3 * j + i + 1) % 6;
      }
      Var<int64_t> at = i % 6;
      Var<double> v = x[i];
      WHILE (~seen[at]) {
        seen[at] = true;
        value[at] += v * cast<double>(at + 1);
        v = sin(v + value[at]);
        next[at] = next[at] ^ 1;
        at = next[at];
      }
      FOR (j, 0, 6) {
        y[i] += value[j] * value[j];
      }
    });
  });
  expectAll(k, {0.3, 0.9, 1.4, -0.7, 0.1, 2.2, 1.1}, 7);
}

template <class T, int N> void smooth(Local<T, N> &a, Index times) {
  FOR (t, 0, times) {
    Local<T, N> old = a;
    FOR (j, 0, N) {
      a[j] = 0.5 * old[j] * old[(j + 1) % N] + 0.25;
    }
  }
}

TEST(Local, IsPassedToFunctionsAndCopied) {
  Kernel k = kernel("copies", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Local<double, 3> a;
      Local<double, 12> b, c;
      a[0] = x[i];
      a[2] = 1.5;
      smooth(a, i + 1);
      b[i] = a[0] + x[i];
      b[11] = a[1];
      smooth(b, 2);
      c = b;
      b[3] = 0.0;
      c[0] -= 2.0 * b[2];
      c[1] *= c[0];
      c[2] /= c[1] + 3.0;
      FOR (j, 0, c.size()) {
        y[i] += c[j] * a[j % 3];
      }
    });
  });
  expectAll(k, {0.3, 0.9, 1.4}, 3);
}

/// What overwrites an element takes its derivative, also a constant.
TEST(Local, OverwrittenElementsHaveNoDerivative) {
  Kernel k = kernel("over", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Local<double, 2> a;
      a[0] = x[i] * 7.0;
      a[i % 2] = 1.0;
      a[1] += x[i];
      y[i] = a[0] * 2.0 + a[1];
    });
  });
  auto x = active<double>({0.5, 2, 3}), y = active<double>({0, 0, 0});
  expectClosedForm({x}, {y}, {{1, 15, 1}}, k, x, y);
}

TEST(Local, SinglePrecision) {
  Kernel k = kernel("single", [](ArrayRef<float, 1> x, ArrayRef<float, 1> y) {
    parallel(x.size(), [&](Index i) {
      Local<float, 4> a;
      a[i % 4] = x[i];
      FOR (t, 0, 6) {
        a[(t + i) % 4] += 0.5f * a[(t + i + 3) % 4] * x[i];
      }
      y[i] = a[0] + a[1] + a[2] + a[3];
    });
  });
  auto x = active<float>({0.5f, 1.25f}), y = active<float>({0, 0});
  k(x, y);
  x.grad().fill(0);
  y.grad().fill(1);
  k.grad(x, y);
  std::vector<float> gradient = x.grad().to_host();
  x.dual().fill(1);
  k.jvp(x, y);
  std::vector<float> tangent = y.dual().to_host();
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(gradient[i], tangent[i], 1e-5 * std::abs(tangent[i]));
}

TEST(Local, IndexIsCheckedInDebugKernels) {
  KernelOptions debug{.debug = true};
  int line = 0;
  Kernel k = kernel(
      "outside",
      [&](ArrayRef<int, 1> at, ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Local<double, 4> a;
          line = __LINE__ + 1;
          a[at[i]] = x[i];
          y[i] = a[0];
        });
      },
      debug);
  auto at = constant<int>({0, 3, 4, 1});
  auto x = active<double>({1, 2, 3, 4}), y = active<double>({0, 0, 0, 0});
  std::initializer_list<std::string> parts = {
      here(__FILE__, line),
      "index 4 is outside of a private array of 4 elements, in work item 2"};
  expectError(ErrorCode::OutOfRange, parts, [&] { k(at, x, y); });
  expectError(ErrorCode::OutOfRange, parts, [&] { k.grad(at, x, y); });
  expectError(ErrorCode::OutOfRange, parts, [&] { k.jvp(at, x, y); });
}

TEST(Local, WorksInDebugKernels) {
  KernelOptions debug{.debug = true, .find_nan = true};
  Kernel k = kernel(
      "debug",
      [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Local<double, 3> a;
          Var<int> t = 0;
          WHILE (t < 7) {
            a[t % 3] = sin(a[(t + 1) % 3] + x[i]);
            t += 1;
          }
          y[i] = a[0] * a[1];
        });
      },
      debug);
  auto x = active<double>({0.5, 2, 3}), y = active<double>({0, 0, 0});
  expectGradients({x}, {y}, k, x, y);
}

/// Places are sums of which parts are negative.
TEST(Local, IndicesAreDifferences) {
  Kernel k = kernel("differences", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                      ArrayRef<double, 1> y) {
    parallel(n.size(), [&](Index i) {
      Local<double, 32> a;
      Local<int8_t, 16> b;
      FOR (t, 0, 32) {
        a[t] = x(t) * x(t);
      }
      FOR (t, 0, 16) {
        b[t] = cast<int8_t>(t * 3);
      }
      y(i) = a[4 - n(i)] * a[16 - 3 * n(i)] + cast<double>(b[9 - n(i)]);
    });
  });
  auto x = active(randomValues(32, 0.5, 2)), y = active(Values(5));
  Array<int> n = cpu().array<int>({5});
  n.from_host({0, 1, 2, 3, 4});
  k(x, n, y);
  Values from = x.to_host(), expected;
  for (int i = 0; i < 5; ++i)
    expected.push_back(from[4 - i] * from[4 - i] * from[16 - 3 * i] *
                           from[16 - 3 * i] +
                       3 * (9 - i));
  Values found = y.to_host();
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-13 * expected[i]) << i;
  expectGradients({x}, {y}, k, x, n, y);
}

TEST(Local, TooMuchOfThemIsNamed) {
  auto k = [](auto size) {
    return kernel("much", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
      parallel(x.size(), [&](Index i) {
        Local<double, decltype(size)::value> a, b, c;
        Var<int64_t> t = 0;
        WHILE (t < 3) {
          a[t] = sin(x[i] + a[i]);
          b[i] += a[t] * a[i];
          c[t] = b[t] * b[i];
          t += 1;
        }
        y[i] = b[i] + c[2];
      });
    });
  };
  auto x = active<double>({0.5, 1}), y = active<double>({0, 0});
  Kernel small = k(std::integral_constant<int, 5000>()),
         large = k(std::integral_constant<int, 8000>());
  bool assembled = assembles([&] {
    expectGradients({x}, {y}, small, x, y);
    large(x, y);
  });
  if (!assembled)
    GTEST_SKIP() << "the driver does not assemble so large private arrays";
  expectError(ErrorCode::BadKernel,
              {"LocalTest.cpp:", "take more than 256 KiB together"},
              [&] { large.grad(x, y); });
}

using Vec2 = std::array<double, 2>;

/// What the kernel below does, on the host.
double iterationsOfVectors(const std::vector<double> &x, int n) {
  Vec2 a[4] = {};
  double m[3][2][2] = {};
  for (int t = 0; t < n; ++t) {
    for (int k = 0; k < 2; ++k)
      a[t % 4][k] = 2 * x[t + k] + a[(t + 1) % 4][k];
    a[t % 4][0] += std::sin(x[t]);
    for (int r = 0; r < 2; ++r)
      for (int c = 0; c < 2; ++c)
        m[t % 3][r][c] += a[t % 4][r] * a[(t + 3) % 4][c];
    for (double &value : a[(t + 2) % 4])
      value *= 0.5;
  }
  Vec2 b = a[1], last = a[n % 4];
  double sum = m[0][1][0] + a[3][0] + (n < 2 ? a[1][n] : 0);
  for (int r = 0; r < 2; ++r)
    sum += (m[1][r][0] * a[2][0] + m[1][r][1] * a[2][1] + b[r]) * last[r];
  return sum;
}

TEST(Local, OfVectorsAndMatrices) {
  Kernel k = kernel("vectors", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                  ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Local<Vec<double, 2>, 4> a;
      Local<Mat<double, 2, 2>, 3> m;
      FOR (t, 0, n(i)) {
        a[t % 4] = vec(x(t), x(t + 1)) * 2.0 + a[(t + 1) % 4];
        a[t % 4].x() += sin(x(t));
        m[t % 3] += outer(a[t % 4], a[(t + 3) % 4]);
        a[(t + 2) % 4] *= 0.5;
      }
      Local<Vec<double, 2>, 4> b = a;
      b[0] = b[1];
      a[b.size() - 1] /= 1;
      Vec<double, 2> v = m[1] * a[2] + b[0];
      y(i) = dot(v, a[n(i) % 4]) + m[0](1, 0) + a[3][0] + a[1][n(i)];
    });
  });
  std::vector<double> values = {.1, .2, .3, .4, .5, .6, .7, .8, .9};
  auto x = active(values), y = active<double>({0, 0, 0, 0});
  auto n = constant<int>({0, 1, 3, 7});
  k(x, n, y);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(y.to_host()[i], iterationsOfVectors(values, n.to_host()[i]),
                1e-13);
  expectGradients({x}, {y}, k, x, n, y);
}

} // namespace
