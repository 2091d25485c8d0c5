/// Derivatives of derivatives: Hessian-vector products, and higher derivatives
/// along curves.

#include "Labels.h"
#include "adbench/Gmm.h"
#include "adbench/Plain.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <cstdlib>

COSTATE_LABEL("*.Gmm*", repeats);
COSTATE_LABEL("*Determin*", waits);

using namespace costate;
using namespace costate::test;
using detail::Mode;

namespace {

using Values = std::vector<double>;

/// Of rank 0, with adjoint and tangent.
template <class T> Array<T> scalar(T value) {
  Array<T> array = cpu().array<T>({}, grad | dual);
  array.fill(value);
  return array;
}

/// Hessian-vector products of the sum of `y`, by `k.gradient().jvp` and by
/// differences of `k.grad`.
class HessianCase {
public:
  HessianCase(Kernel kernel, Values start)
      : kernel(std::move(kernel)), start(std::move(start)) {
    x = active<double>(this->start);
    y = active<double>(Values(this->start.size()));
  }

  Values gradientAt(const Values &point) {
    x.from_host(point);
    y.fill(0);
    kernel(x, y);
    x.grad().fill(0);
    y.grad().fill(1);
    kernel.grad(x, y);
    return x.grad().to_host();
  }

  Values product(const Values &direction) {
    x.from_host(start);
    y.fill(0);
    x.dual().from_host(direction);
    kernel.jvp(x, y);
    x.grad().fill(0);
    x.grad().dual().fill(0);
    y.grad().fill(1);
    y.grad().dual().fill(0);
    kernel.gradient().jvp(x, y);
    return x.grad().dual().to_host();
  }

  /// By central differences, extrapolated over two steps.
  Values differences(const Values &direction) {
    auto slope = [&](double h) {
      Values above = start, below = start;
      for (size_t i = 0; i < start.size(); ++i) {
        above[i] += h * direction[i];
        below[i] -= h * direction[i];
      }
      Values a = gradientAt(above), b = gradientAt(below);
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = (a[i] - b[i]) / (2 * h);
      return a;
    };
    Values coarse = slope(2e-4), fine = slope(1e-4);
    for (size_t i = 0; i < fine.size(); ++i)
      fine[i] += (fine[i] - coarse[i]) / 3;
    return fine;
  }

  void expectProduct(const Values &direction) {
    Values expected = differences(direction), found = product(direction);
    // Work items may add to one element, in any order.
    Values gradient = x.grad().to_host(), alone = gradientAt(start);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(gradient[i], alone[i],
                  1e-13 * std::max(1.0, std::abs(alone[i])));
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i],
                  1e-6 * std::max(1.0, std::abs(expected[i])))
          << "entry " << i;
  }

  Kernel kernel;
  Values start;
  Array<double> x, y;
};

/// v <- v exp(v) or v + sin(v) x while below a bound that v itself moves:
/// records hold varied values and the trip count differs.
Kernel loopingKernel() {
  return kernel("looping", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      Var<int> iterations = 0;
      WHILE (v *v < 9.0 + 0.1 * v) {
        IF (v > 1.0) {
          v = v * exp(0.3 * v);
        }
        ELSE { v = v + sin(v) * x(i); }
        iterations += 1;
        IF (iterations > 6) {
          BREAK;
        }
      }
      y(i) = v * x(i);
    });
  });
}

// RULE: tangents-of-gradients
TEST(SecondOrder, ThroughLoopsWhoseIterationsDifferAndBranches) {
  HessianCase(loopingKernel(), {0.4, 0.9, 1.3, 2.2})
      .expectProduct({1, -0.5, 2, 0.7});
}

TEST(SecondOrder, ThroughNestedLoopsThatReadOtherElements) {
  Kernel k = kernel("mixed", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (a, 0, i + 1) {
        FOR (b, 0, a + 1) {
          v = v * cos(x(b)) + x(a) * x(b);
        }
        IF (v > 2.0) {
          v = sqrt(v);
        }
      }
      y(i) = v;
    });
  });
  HessianCase(k, {0.5, -0.7, 1.1, 0.3, 0.9})
      .expectProduct({0.3, 1, -2, 0.5, 0.1});
}

// RULE: tangents-of-gradients
TEST(SecondOrder, ThroughSerialValuesThatRangesUse) {
  Kernel k = kernel("serial", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    Var<double> scale = 1.0;
    FOR (j, 0, x.size()) {
      scale = scale * (1.0 + 0.1 * sin(x(j)));
    }
    parallel(x.size(), [&](Index i) { y(i) = exp(scale * x(i)) * scale; });
    y(0) += scale * scale;
  });
  HessianCase(k, {0.5, -0.7, 1.1, 0.3}).expectProduct({0.3, 1, -2, 0.5});
}

TEST(SecondOrder, NewtonInAWhileHasTheSecondDerivativeOfTheRoot) {
  Kernel root =
      kernel("root", [](ArrayRef<double, 1> a, ArrayRef<double, 1> r) {
        parallel(a.size(), [&](Index i) {
          Var<double> v = a(i);
          WHILE (abs(v * v - a(i)) > 1e-13 * a(i)) {
            v = 0.5 * (v + a(i) / v);
          }
          v = 0.5 * (v + a(i) / v); // two more: derivatives converge one by one
          v = 0.5 * (v + a(i) / v);
          r(i) = v;
        });
      });
  HessianCase c(root, {0.5, 2, 30, 1e4});
  Values found = c.product({1, 1, 1, 1});
  for (size_t i = 0; i < c.start.size(); ++i)
    EXPECT_NEAR(found[i] * 4 * std::pow(c.start[i], 1.5), -1,
                1e-12); // -1/4 a^(-3/2)
  c.start = {0.5, 2, 30, 100};
  c.expectProduct({1, -1, 0.5, 2});
}

TEST(SecondOrder, TheHessianIsSymmetric) {
  Kernel k =
      kernel("coupled", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = 0.0;
          FOR (j, 0, x.size()) {
            v += sin(x(i) * x(j)) * exp(0.1 * v);
          }
          y(i) = v * v;
        });
      });
  HessianCase c(k, randomValues(6, -1, 1));
  std::vector<Values> columns;
  for (size_t j = 0; j < 6; ++j) {
    Values unit(6);
    unit[j] = 1;
    columns.push_back(c.product(unit));
  }
  double largest = 0;
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NEAR(columns[i][j], columns[j][i],
                  1e-13 * std::max(1.0, std::abs(columns[i][j])));
      largest = std::max(largest, std::abs(columns[i][j]));
    }
  EXPECT_GT(largest, 0.1);
}

//===-- Problems of benchmarks --------------------------------------------===//

size_t parameterCount(const adbench::GmmInput &input) {
  return input.alpha.size() + input.mu.size() + input.icf.size();
}

/// The gradient of the GMM objective by complex steps of plain C++.
Values complexStepGradient(const adbench::GmmInput &input) {
  Values gradient(parameterCount(input)), unit(gradient.size());
  for (size_t i = 0; i < unit.size(); ++i) {
    unit[i] = 1;
    gradient[i] = adbench::gmmDirectional(input, unit);
    unit[i] = 0;
  }
  return gradient;
}

Values ownGradient(const adbench::GmmInput &input) {
  adbench::Gmm gmm(cpu(), input);
  gmm.runObjective();
  gmm.runGradient();
  return gmm.gradient();
}

adbench::GmmInput moved(adbench::GmmInput input, const Values &direction,
                        double by) {
  const double *next = direction.data();
  for (Values *parameter : {&input.alpha, &input.mu, &input.icf})
    for (double &value : *parameter)
      value += by * *next++;
  return input;
}

/// Expects differences of `gradientOf(input)`.
template <class Gradient>
void expectProduct(const adbench::GmmInput &input, Gradient &&gradientOf) {
  Values direction = randomValues(parameterCount(input), -1, 1);
  adbench::Gmm gmm(cpu(), input, grad | dual);
  gmm.runHessianProduct(direction);
  auto slope = [&](double h) {
    Values a = gradientOf(moved(input, direction, h));
    Values b = gradientOf(moved(input, direction, -h));
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = (a[i] - b[i]) / (2 * h);
    return a;
  };
  Values coarse = slope(2e-4), fine = slope(1e-4);
  for (size_t i = 0; i < fine.size(); ++i)
    fine[i] += (fine[i] - coarse[i]) / 3;
  EXPECT_LE(adbench::relativeError(gmm.hessianProduct(), fine), 1e-6)
      << input.name;
  EXPECT_LE(adbench::relativeError(gmm.gradient(), gradientOf(input)), 1e-10)
      << input.name;
}

TEST(SecondOrder, GmmAgreesWithDifferencesOfComplexSteps) {
  adbench::GmmInput input = adbench::randomGmm(3, 4, 30);
  input.m = 2;
  input.gamma = 1.25;
  expectProduct(input, complexStepGradient);
}

TEST(SecondOrder, GmmOfAdbenchAgreesWithDifferencesOfGradients) {
  const char *folder = std::getenv("COSTATE_DATA");
  if (!folder || !std::filesystem::is_directory(folder))
    GTEST_SKIP() << "no inputs of ADBench: set COSTATE_DATA";
  for (auto &file : adbench::inputs(folder, "gmm_"))
    expectProduct(adbench::readGmm(file), ownGradient);
}

/// The sum over points of the squared distance to the closest centroid.
struct KMeans : testing::Test {
  static constexpr int64_t points = 200, count = 5, dimensions = 3;
  Kernel cost =
      kernel("kmeans", [](ArrayRef<double, 2> x, ArrayRef<double, 2> c,
                          ArrayRef<double, 0> sum) {
        parallel(x.size(0), [&](Index i) {
          Var<double> best = 0.0;
          FOR (k, 0, c.size(0)) {
            Var<double> squares = 0.0;
            FOR (j, 0, c.size(1)) {
              Expr<double> difference = x(i, j) - c(k, j);
              squares += difference * difference;
            }
            IF ((k == 0) | (squares < best)) {
              best = squares;
            }
          }
          sum() += best;
        });
      });
  Values data = randomValues(points * dimensions, -1, 1);
  Values start = randomValues(count * dimensions, -1, 1, 2);
  Array<double> x = constant(data, {points, dimensions}),
                c = active(start, {count, dimensions}), sum = scalar<double>(0);

  /// The gradient into c.grad(), its product with c.dual() beside it.
  void derive() {
    c.grad().fill(0);
    c.grad().dual().fill(0);
    sum.grad().fill(1);
    cost.gradient().jvp(x, c, sum);
  }

  size_t closest(size_t point) const {
    auto distance = [&](size_t k) {
      double squares = 0;
      for (size_t j = 0; j < dimensions; ++j)
        squares += std::pow(
            data[point * dimensions + j] - start[k * dimensions + j], 2);
      return squares;
    };
    size_t best = 0;
    for (size_t k = 1; k < count; ++k)
      if (distance(k) < distance(best))
        best = k;
    return best;
  }
};

TEST_F(KMeans, TheProductAgreesWithDifferencesOfGradients) {
  Values direction = randomValues(start.size(), -1, 1, 3);
  auto gradientAt = [&](double along) {
    Values at = start;
    for (size_t i = 0; i < at.size(); ++i)
      at[i] += along * direction[i];
    c.from_host(at);
    c.grad().fill(0);
    sum.grad().fill(1);
    cost.grad(x, c, sum);
    return c.grad().to_host();
  };
  Values above = gradientAt(1e-6), below = gradientAt(-1e-6);
  c.from_host(start);
  c.dual().from_host(direction);
  derive();
  for (size_t e = 0; e < start.size(); ++e) {
    double difference = (above[e] - below[e]) / 2e-6;
    EXPECT_NEAR(c.grad().dual().to_host()[e], difference,
                1e-6 * std::max(1.0, std::abs(difference)));
  }
}

TEST_F(KMeans, TheProductIsThatOfTheDiagonalHessian) {
  Values direction = randomValues(start.size(), -1, 1, 3), members(count);
  c.dual().from_host(direction);
  derive();
  for (size_t i = 0; i < points; ++i)
    ++members[closest(i)];
  for (size_t e = 0; e < start.size(); ++e)
    EXPECT_NEAR(c.grad().dual().to_host()[e],
                2 * members[e / dimensions] * direction[e], 1e-11);
}

/// Newton's step is that of Lloyd: every centroid moves to the mean of its
/// points.
TEST_F(KMeans, NewtonGoesToTheMeans) {
  c.dual().fill(1); // the Hessian is diagonal: this gives the diagonal
  derive();
  Values means(start.size()), members(count);
  for (size_t i = 0; i < points; ++i) {
    size_t k = closest(i);
    ++members[k];
    for (size_t j = 0; j < dimensions; ++j)
      means[k * dimensions + j] += data[i * dimensions + j];
  }
  Values gradient = c.grad().to_host(), diagonal = c.grad().dual().to_host();
  for (size_t e = 0; e < start.size(); ++e) {
    ASSERT_GT(members[e / dimensions], 0);
    EXPECT_NEAR(start[e] - gradient[e] / diagonal[e],
                means[e] / members[e / dimensions], 1e-13);
  }
}

//===-- Closed forms ------------------------------------------------------===//

TEST(SecondOrder, AProductWithZeroKeepsItsMixedDerivative) {
  Kernel k = kernel("product", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                  ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += y(i) * sqrt(x(i)); });
  });
  auto x = active<double>({0.5, 1.5, 0.8}), y = active<double>({0, 0, 0}),
       s = scalar<double>(0);
  x.dual().fill(1);
  y.dual().fill(1);
  s.grad().fill(1);
  k.gradient().jvp(x, y, s);
  for (size_t i = 0; i < 3; ++i) {
    double root = std::sqrt(x.to_host()[i]);
    EXPECT_DOUBLE_EQ(x.grad().dual().to_host()[i], 0.5 / root);
    EXPECT_DOUBLE_EQ(y.grad().dual().to_host()[i], 0.5 / root);
    EXPECT_EQ(x.grad().to_host()[i], 0);
  }
}

TEST(SecondOrder, PowersAtZeroHaveNoNaN) {
  Kernel k = kernel("powers", [](ArrayRef<double, 1> x, ArrayRef<double, 1> p,
                                 ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) { y(i) = pow(x(i), p(i)); });
  });
  auto x = active<double>({0, 0, 0, 2}), y = active<double>({0, 0, 0, 0});
  auto p = constant<double>({1, 2, 3, 3});
  x.dual().fill(1);
  k.jvp(x, p, y);
  y.grad().fill(1);
  k.gradient().jvp(x, p, y);
  EXPECT_EQ(x.grad().to_host(), (Values{1, 0, 0, 12}));
  EXPECT_EQ(x.grad().dual().to_host(), (Values{0, 2, 0, 12}));
}

TEST(SecondOrder, ABranchNotTakenContributesNothing) {
  Kernel k =
      kernel("untaken", [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) {
          s() += select(x(i) > 0.0, log(x(i)), Expr<double>(0.0));
        });
      });
  auto x = active<double>({0, 0.5}), s = scalar<double>(0);
  x.dual().fill(1);
  s.grad().fill(1);
  k.gradient().jvp(x, s);
  EXPECT_EQ(x.grad().to_host(), (Values{0, 2}));
  EXPECT_EQ(x.grad().dual().to_host(), (Values{0, -4}));
}

/// y(i) = x(i)^2, s += y(i)^2, with adjoints 1 for y and s.
Kernel squareTwice() {
  return kernel("square_twice", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                   ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
    parallel(x.size(), [&](Index i) { s() += y(i) * y(i); });
  });
}

struct SquareTwice : testing::Test {
  Kernel k = squareTwice();
  Array<double> x = active<double>({0.5, 1.5, -0.8}),
                y = active<double>({0, 0, 0}), s = scalar<double>(0);

  void seed() {
    for (Array<double> *array : {&x, &y, &s}) {
      array->grad().fill(array == &x ? 0 : 1);
      array->grad().dual().fill(0);
    }
  }
};

// RULE: tangents-of-gradients
TEST_F(SquareTwice, TangentsOfOwnStoresAreReadBack) {
  x.dual().fill(1);
  k.jvp(x, y, s);
  seed();
  k.gradient().jvp(x, y, s);
  Values expected = {5, 29, 9.68}; // 12 x^2 + 2
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(x.grad().dual().to_host()[i], expected[i], 1e-13);
  EXPECT_EQ(y.grad().to_host(), (Values{0, 0, 0}));
  EXPECT_EQ(y.grad().dual().to_host(), (Values{0, 0, 0}));
  EXPECT_EQ(s.grad().to_host(), Values{1});
}

TEST_F(SquareTwice, StoresOfTheSameWorkItemNeedNoLaunchBefore) {
  k = kernel("square_at_once", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                                  ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) {
      y(i) = x(i) * x(i);
      s() += y(i) * y(i);
    });
  });
  x.dual().fill(1);
  seed();
  k.gradient().jvp(x, y, s);
  Values expected = {5, 29, 9.68};
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(x.grad().dual().to_host()[i], expected[i], 1e-13);
}

TEST_F(SquareTwice, AllOtherMemoryStaysAsItIs) {
  x.dual().from_host({1, 2, 3});
  y.dual().fill(7);
  s.dual().fill(7);
  k.jvp(x, y, s);
  seed();
  std::vector<Array<double>> kept = {x, y, s, x.dual(), y.dual(), s.dual()};
  std::vector<Values> before;
  std::vector<uint64_t> versions;
  for (Array<double> &array : kept) {
    before.push_back(array.to_host());
    versions.push_back(array.version());
  }
  k.gradient().jvp(x, y, s);
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].to_host(), before[i]);
    EXPECT_EQ(kept[i].version(), versions[i]);
  }
}

// RULE: tangents-of-gradients
TEST_F(SquareTwice, WithoutTheTangentsOfItsOwnLaunchItIsRefused) {
  x.dual().fill(1);
  k(x, y, s);
  seed();
  auto product = [&] { k.gradient().jvp(x, y, s); };
  expectError(ErrorCode::CannotReplay,
              {"square_twice", "argument 1",
               "its tangent was not computed when the kernel last ran",
               "launch `jvp` on these arguments right before"},
              product);
  k.jvp(x, y, s);
  product();
  y.dual().fill(0);
  expectError(ErrorCode::CannotReplay,
              {"argument 2", "its tangent was written since"}, product);
  k.jvp(x, y, s);
  x.dual().fill(2);
  expectError(ErrorCode::CannotReplay,
              {"argument 1", "its tangent was written since"}, product);
  k.jvp(x, y, s);
  x.fill(2);
  expectError(ErrorCode::CannotReplay, {"argument 1", "was written since"},
              product);
  auto other = active<double>({1, 1, 1});
  expectError(ErrorCode::CannotReplay, {"has not run on these arrays"},
              [&] { k.gradient().jvp(other, y, s); });
}

TEST_F(SquareTwice, TangentsOfAdjointsCount) {
  x.dual().fill(0);
  k.jvp(x, y, s);
  seed();
  y.grad().dual().from_host({1, 2, 3});
  s.grad().dual().fill(0.5);
  k.gradient().jvp(x, y, s); // linear in the adjoints: 2 x y' + 4 x^3 s'
  Values expected = {1.25, 12.75, -5.824};
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(x.grad().dual().to_host()[i], expected[i], 1e-13);
  EXPECT_EQ(y.grad().dual().to_host(),
            (Values{0, 0, 0})); // consumed, like y.grad()
}

TEST_F(SquareTwice, TheGradientAsAKernelIsTheGradient) {
  k(x, y, s);
  seed();
  k.gradient()(x, y, s);
  Values asKernel = x.grad().to_host();
  seed();
  k.grad(x, y, s);
  EXPECT_EQ(x.grad().to_host(), asKernel);
  x.dual().fill(1);
  k.tangent()(x, y, s);
  Values tangents = y.dual().to_host();
  k.jvp(x, y, s);
  EXPECT_EQ(y.dual().to_host(), tangents);
}

//===-- Kernels that overwrite what their gradient needs ------------------===//

struct Overwriting : testing::Test {
  Kernel k =
      kernel("overwriting", [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) {
          FOR (j, 0, i + 1) {
            x(i) = x(i) * x(i) + 0.1;
          }
        });
        parallel(x.size(), [&](Index i) { s() += sin(x(i)) * x(0); });
        parallel(x.size(), [&](Index i) { x(i) = exp(x(i)); });
      });
  const Values start = {0.9, 0.5, -0.8, 0.3}, direction = {1, -0.5, 2, 0.7};
  Array<double> x = active(start), s = scalar<double>(0);

  Values gradientAt(double along) {
    Values point = start;
    for (size_t i = 0; i < point.size(); ++i)
      point[i] += along * direction[i];
    x.from_host(point);
    x.grad().fill(0.3);
    s.grad().fill(1);
    k.grad(initial_state, x, s);
    return x.grad().to_host();
  }
};

// RULE: tangents-of-gradients
TEST_F(Overwriting, TheTangentOfAGradientFromTheInitialState) {
  Values above = gradientAt(1e-5), below = gradientAt(-1e-5),
         middle = gradientAt(0);
  x.dual().from_host(direction);
  s.dual().fill(5);
  x.grad().fill(0.3);
  x.grad().dual().fill(0);
  std::vector<Array<double>> kept = {x, s, x.dual(), s.dual()};
  std::vector<Values> before;
  std::vector<uint64_t> versions;
  for (Array<double> &array : kept) {
    before.push_back(array.to_host());
    versions.push_back(array.version());
  }
  k.gradient().jvp(initial_state, x, s);
  EXPECT_EQ(x.grad().to_host(), middle);
  for (size_t i = 0; i < start.size(); ++i) {
    double difference = (above[i] - below[i]) / 2e-5;
    EXPECT_NEAR(x.grad().dual().to_host()[i], difference,
                1e-6 * std::max(1.0, std::abs(difference)));
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].to_host(), before[i]);
    EXPECT_EQ(kept[i].version(), versions[i]);
  }
}

TEST_F(Overwriting, TheGradientAsAKernelTakesTheInitialStateToo) {
  Values expected = gradientAt(0);
  x.grad().fill(0.3);
  k.gradient()(initial_state, x, s);
  EXPECT_EQ(x.grad().to_host(), expected);
}

TEST_F(Overwriting, WithoutTheInitialStateItIsRefusedByName) {
  x.dual().fill(1);
  k.jvp(x, s);
  expectError(ErrorCode::CannotReplay,
              {"needs the value read here from argument 1"},
              [&] { k.gradient().jvp(x, s); });
  expectError(ErrorCode::BadArgument,
              {"overwriting", "only a gradient runs from the initial state"},
              [&] { k.jvp(initial_state, x, s); });
  expectError(ErrorCode::BadArgument, {"only a gradient"},
              [&] { k.tangent()(initial_state, x, s); });
}

//===-- Curves ------------------------------------------------------------===//

/// x(t) = (t, t^2 / 2): derivatives of sin(x0 exp(x1)) by hand.
TEST(Curves, TangentsOfTangentsAreSecondAndThirdDerivatives) {
  Kernel k = kernel("wave", [](ArrayRef<double, 1> x, ArrayRef<double, 0> y,
                               ArrayRef<double, 0> sum) {
    y() = sin(x(0) * exp(x(1)));
    sum() += y();
  });
  const double t = 0.3;
  auto x = active<double>({t, t * t / 2}), y = scalar<double>(0),
       sum = scalar<double>(1);
  x.dual().from_host({1, t});
  x.dual().dual().from_host({0, 1});
  sum.dual().fill(10);
  sum.dual().dual().fill(20);
  sum.dual().dual().dual().fill(30);
  k.tangent().tangent().jvp(x, y, sum);
  // u = t e, e = exp(t^2/2): u' = (1 + t^2) e, u'' = (3t + t^3) e, u''' = (3 +
  // 6t^2 + t^4) e
  double e = std::exp(t * t / 2), u = t * e, u1 = (1 + t * t) * e,
         u2 = (3 * t + t * t * t) * e, u3 = (3 + 6 * t * t + t * t * t * t) * e,
         s = std::sin(u), c = std::cos(u);
  double first = c * u1, second = c * u2 - s * u1 * u1,
         third = c * u3 - 3 * s * u1 * u2 - c * u1 * u1 * u1;
  EXPECT_NEAR(y.to_host()[0], s, 1e-15);
  EXPECT_NEAR(y.dual().to_host()[0], first, 1e-14);
  EXPECT_NEAR(y.dual().dual().to_host()[0], second, 1e-14);
  EXPECT_NEAR(y.dual().dual().dual().to_host()[0], third, 1e-14);
  EXPECT_NEAR(sum.to_host()[0], 1 + s, 1e-15);
  EXPECT_NEAR(sum.dual().to_host()[0], 10 + first, 1e-14);
  EXPECT_NEAR(sum.dual().dual().to_host()[0], 20 + second, 1e-14);
  EXPECT_NEAR(sum.dual().dual().dual().to_host()[0], 30 + third, 1e-14);
}

TEST(Curves, TheGradientHasHigherDerivativesToo) {
  Kernel k =
      kernel("quintic", [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
        parallel(x.size(), [&](Index i) {
          Var<double> p = 1.0;
          FOR (j, 0, 5) {
            p = p * x(i);
          }
          s() += p;
        });
      });
  auto x = active<double>({0.5, -2, 3}), s = scalar<double>(0);
  x.dual().fill(2);
  x.dual().dual().fill(1);
  s.grad().fill(1);
  k.gradient().tangent().tangent().jvp(x, s);
  for (size_t i = 0; i < 3; ++i) {
    double v = x.to_host()[i], d = 2, dd = 1;
    EXPECT_NEAR(x.grad().to_host()[i], 5 * v * v * v * v, 1e-12);
    EXPECT_NEAR(x.grad().dual().to_host()[i], 20 * v * v * v * d, 1e-11);
    EXPECT_NEAR(x.grad().dual().dual().to_host()[i],
                60 * v * v * d * d + 20 * v * v * v * dd, 1e-11);
    EXPECT_NEAR(x.grad().dual().dual().dual().to_host()[i],
                120 * v * d * d * d + 3 * 60 * v * v * d * dd, 1e-11);
  }
}

TEST(Curves, SecondDerivativesThroughLoopsAgreeWithDifferences) {
  Kernel k = loopingKernel();
  const Values start = {0.4, 0.9, 1.3, 2.2}, direction = {1, -0.5, 2, 0.7},
               bend = {-1, 0.5, 0.3, 0.1};
  auto x = active(start), y = active<double>(Values(4));
  auto tangentAt = [&](double t) {
    Values point(4), speed(4);
    for (size_t i = 0; i < 4; ++i) {
      point[i] = start[i] + t * direction[i] + t * t / 2 * bend[i];
      speed[i] = direction[i] + t * bend[i];
    }
    x.from_host(point);
    x.dual().from_host(speed);
    k.jvp(x, y);
    return y.dual().to_host();
  };
  Values above = tangentAt(1e-5), below = tangentAt(-1e-5);
  x.from_host(start);
  x.dual().from_host(direction);
  x.dual().dual().from_host(bend);
  k.tangent().jvp(x, y);
  for (size_t i = 0; i < 4; ++i) {
    double difference = (above[i] - below[i]) / 2e-5;
    EXPECT_NEAR(y.dual().dual().to_host()[i], difference,
                1e-6 * std::max(1.0, std::abs(difference)));
  }
}

//===-- Other types -------------------------------------------------------===//

TEST(SecondOrder, SinglePrecisionAndConversions) {
  Kernel k = kernel("narrow", [](ArrayRef<float, 1> x, ArrayRef<double, 1> w,
                                 ArrayRef<float, 0> s) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = cast<double>(x(i)) * w(i);
      FOR (j, 0, 3) {
        v = v * cast<double>(x(i));
      }
      s() += cast<float>(v);
    });
  });
  auto x = active<float>({0.5f, 2, 3}), s = scalar<float>(0);
  auto w = active<double>({1, 2, 0.5});
  x.dual().fill(1);
  s.grad().fill(1);
  k.gradient().jvp(x, w, s);
  for (size_t i = 0; i < 3; ++i) {
    float v = x.to_host()[i];
    double a = w.to_host()[i];
    EXPECT_NEAR(x.grad().dual().to_host()[i], 12 * a * v * v,
                1e-5 * 12 * a * v * v); // a x^4
    EXPECT_NEAR(w.grad().dual().to_host()[i], 4.0 * v * v * v,
                1e-5 * 4 * v * v * v);
  }
}

//===-- Companions and refusals -------------------------------------------===//

TEST(Companions, AreMadeAtFirstUseAndCountAgainstMemory) {
  Device device = openDevice();
  Array<double> x = device.array<double>({1000}, grad | dual);
  size_t before = device.current_bytes();
  EXPECT_TRUE(x.grad().has_dual());
  EXPECT_TRUE(x.dual().has_dual());
  EXPECT_FALSE(x.dual().has_grad());
  EXPECT_EQ(device.current_bytes(), before);
  x.grad().dual().fill(1);
  EXPECT_EQ(device.current_bytes() - before, 8000u);
  EXPECT_EQ(x.grad().dual().to_host(), Values(1000, 1.0));
  EXPECT_EQ(x.dual().dual().dual().to_host(), Values(1000));
}

TEST(Companions, ThatDoNotExistAreNamed) {
  Kernel k = squareTwice();
  auto x = active<double>({1, 2}), y = active<double>({0, 0}),
       s = scalar<double>(0);
  Array<double> onlyGrad = cpu().array<double>({2}, grad),
                onlyDual = cpu().array<double>({2}, dual);
  expectError(ErrorCode::MissingGradient,
              {"argument 1", "its gradient has no tangent", "grad | dual"},
              [&] { k.gradient().jvp(onlyGrad, y, s); });
  expectError(ErrorCode::MissingGradient,
              {"argument 2", "has no gradient", "grad"},
              [&] { k.gradient().jvp(x, onlyDual, s); });
  expectError(ErrorCode::MissingGradient,
              {"argument 2", "has no gradient", "itself a gradient",
               "an array of your own"},
              [&] { k.grad(x, y.grad(), s); });
  Array<double> plain = cpu().array<double>({2}, grad),
                sum = cpu().array<double>({}, grad),
                z = cpu().array<double>({2}, grad);
  expectError(ErrorCode::MissingGradient, {"no argument has a tangent", "dual"},
              [&] { k.gradient().jvp(plain, z, sum); });
  expectError(ErrorCode::MissingGradient,
              {"is a gradient", "has no tangent", "grad | dual"},
              [&] { onlyGrad.grad().dual(); });
  expectError(ErrorCode::MissingGradient,
              {"itself a gradient or a tangent", "has no gradient"},
              [&] { x.grad().grad(); });
}

TEST(Companions, AnArgumentWithoutDerivativesIsAConstant) {
  Kernel k = kernel("weighted", [](ArrayRef<double, 1> x, ArrayRef<double, 1> w,
                                   ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { s() += w(i) * x(i) * x(i) * x(i); });
  });
  auto x = active<double>({1, 2});
  auto w = constant<double>({3, 5});
  Array<double> s = cpu().array<double>(
      {}, grad); // its adjoint has no tangent: it is constant
  x.dual().fill(1);
  s.grad().fill(1);
  k.gradient().jvp(x, w, s);
  EXPECT_EQ(x.grad().dual().to_host(), (Values{18, 60}));
}

TEST(SecondOrder, GradientsOfGradientsAndOfTangentsAreRefusedByName) {
  Kernel k = squareTwice();
  for (const Kernel &derived :
       {k.gradient(), k.tangent(), k.gradient().tangent()}) {
    expectError(ErrorCode::NotDifferentiable,
                {"square_twice", "has no gradient", "k.gradient().jvp"},
                [&] { derived.gradient(); });
    auto x = active<double>({1});
    expectError(ErrorCode::NotDifferentiable, {"has no gradient"},
                [&] { derived.grad(x, x, x); });
  }
  auto x = active<double>({1}), y = active<double>({0}), s = scalar<double>(0);
  expectError(ErrorCode::BadArgument, {"check_gradient takes a kernel"},
              [&] { check_gradient(k.gradient(), x, y, s); });
}

TEST(SecondOrder, DerivedKernelsSayWhatTheyAre) {
  Kernel k = loopingKernel();
  EXPECT_NE(k.gradient().ir().find("@looping.grad("), std::string::npos);
  EXPECT_EQ(k.gradient().ir(), k.ir(Mode::Gradient));
  std::string text = k.gradient().ir(Mode::Tangent);
  EXPECT_NE(text.find("@looping.grad.jvp("), std::string::npos);
  EXPECT_NE(text.find("costate.tangent_of = 2"),
            std::string::npos); // of an adjoint
  EXPECT_EQ(k.gradient().tangent().ir(), text);
  EXPECT_EQ(k.gradient().arguments().size(), 2u);
  auto x = active<double>({1}), y = active<double>({0});
  k.gradient().jvp(x, y);
  k.tangent().jvp(x, y);
  std::string report = k.report();
  EXPECT_NE(report.find("gradient with respect to arguments 1, 2, its tangent "
                        "along arguments 1, 2: compiled in"),
            std::string::npos)
      << report;
  EXPECT_NE(
      report.find(
          "tangent with respect to arguments 1, 2, to order 2: compiled in"),
      std::string::npos)
      << report;
}

/// Its records are twice as wide as those of the gradient, which still fit.
TEST(SecondOrder, ATapeThatDoesNotFitHasChangedNothing) {
  if (!isOnCpu())
    GTEST_SKIP() << "warps of a GPU run again what does not fit";
  Device device = openDevice({.threads = 1, .memory_limit = 6 << 20});
  Kernel k = kernel("long", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y,
                               Scalar<int> iterations) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, iterations) {
        v = sin(v) * x(i) + 0.1;
      }
      y(i) = v;
    });
  });
  Array<double> x = device.array<double>({4}, grad | dual),
                y = device.array<double>({4}, grad | dual);
  std::vector<Array<double>> changing = {x.grad(), x.grad().dual(), y.grad(),
                                         y.grad().dual()};
  x.fill(0.5);
  x.dual().fill(1);
  k.grad(x, y, 250000);
  for (Array<double> &array : changing)
    array.from_host({1, 2, 3, 4});
  expectError(ErrorCode::OutOfMemory, {"long"},
              [&] { k.gradient().jvp(x, y, 250000); });
  for (Array<double> &array : changing)
    EXPECT_EQ(array.to_host(), (Values{1, 2, 3, 4}));
  k.gradient().jvp(x, y, 1000);
  EXPECT_NE(x.grad().dual().to_host(), (Values{1, 2, 3, 4}));
}

TEST(SecondOrder, RunsInDebugAndDeterministicKernels) {
  auto make = [](KernelOptions options) {
    return kernel(
        "shared",
        [](ArrayRef<double, 1> x, ArrayRef<double, 0> s) {
          parallel(x.size(), [&](Index i) {
            Var<double> v = x(0);
            FOR (j, 0, x.size()) {
              v = v * sin(x(j)) + x(i);
            }
            s() += v;
          });
        },
        options);
  };
  auto x = active(randomValues(300, -1, 1)), s = scalar<double>(0);
  std::vector<Values> found;
  for (KernelOptions options : {KernelOptions{}, KernelOptions{.debug = true},
                                KernelOptions{.deterministic = true},
                                KernelOptions{.find_nan = true}}) {
    x.grad().fill(0);
    x.grad().dual().fill(0);
    x.dual().from_host(randomValues(300, -1, 1, 2));
    s.grad().fill(1);
    make(options).gradient().jvp(x, s);
    found.push_back(x.grad().dual().to_host());
  }
  double largest = 0;
  for (size_t i = 0; i < 300; ++i) {
    double scale = std::max(1.0, std::abs(found[0][i]));
    EXPECT_NEAR(found[0][i], found[1][i], 1e-12 * scale);
    EXPECT_NEAR(found[0][i], found[2][i], 1e-12 * scale);
    EXPECT_NEAR(found[0][i], found[3][i], 1e-12 * scale);
    largest = std::max(largest, std::abs(found[0][i]));
  }
  EXPECT_GT(largest, 0.1);
}

//===-- As text -----------------------------------------------------------===//

TEST(SecondOrder, TheTextOfAGradientWithATapeHasATangent) {
  Kernel k = loopingKernel();
  Kernel gradient = Kernel::from_ir(k.ir(Mode::Gradient), "looping.grad");
  HessianCase c(k, {0.4, 0.9, 1.3, 2.2});
  const Values direction = {1, -0.5, 2, 0.7};
  Values expected = c.product(direction);
  auto x = active(c.start), y = active<double>(Values(4));
  auto gx = active<double>(Values(4)), gy = active<double>(Values(4, 1.0));
  x.dual().from_host(direction);
  gradient.jvp(x, y, gx, gy);
  EXPECT_EQ(gx.dual().to_host(), expected);
  expectError(ErrorCode::NotDifferentiable,
              {"a gradient has no gradient", "take its forward derivative"},
              [&] { gradient.grad(x, y, gx, gy); });
}

} // namespace
