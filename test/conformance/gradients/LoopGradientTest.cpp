/// Loops whose gradients are known in closed form, checked against forward mode
/// and differences too.

#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

TEST(LoopGradient, RepeatedSineWithDepthFromMemory) {
  Kernel k = kernel("iterate", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                  ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n[i]) {
        v = v * sin(v);
      }
      y(i) = v;
    });
  });
  std::vector<int> depths{0, 1, 7, 1000, 0, 3};
  std::vector<double> start{1.5, 0.3, 1.2, 1.9, -0.7, -1.4};
  auto x = active(start), y = active(std::vector<double>(6, 0.0));
  auto n = constant(depths);
  k(x, n, y);
  y.grad().fill(1);
  k.grad(x, n, y);
  std::vector<double> gradient = x.grad().to_host();
  for (size_t i = 0; i < start.size(); ++i) {
    double v = start[i], slope = 1;
    for (int j = 0; j < depths[i]; ++j) {
      slope *= std::sin(v) + v * std::cos(v);
      v *= std::sin(v);
    }
    EXPECT_NEAR(gradient[i], slope, 1e-12 * std::max(1.0, std::abs(slope)));
  }
  expectGradients({x}, {y}, k, x, n, y);
}

TEST(LoopGradient, NewtonInWhile) {
  Kernel k = kernel("newton", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      WHILE (abs(v * v - x(i)) > 1e-14 * x(i)) {
        v = 0.5 * (v + x(i) / v);
      }
      y(i) = v;
    });
  });
  std::vector<double> start{0.5, 2, 10, 123.456};
  auto x = active(start), y = active(std::vector<double>(4, 0.0));
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  std::vector<double> gradient = x.grad().to_host();
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_NEAR(gradient[i], 0.5 / std::sqrt(start[i]), 1e-12);
  expectGradients({x}, {y}, k, x, y);
}

TEST(LoopGradient, SearchWithBreak) {
  Kernel k =
      kernel("search", [](ArrayRef<double, 1> x, ArrayRef<double, 1> limit,
                          ArrayRef<double, 1> y, ArrayRef<int, 1> steps) {
        parallel(limit.size(0), [&](Index i) {
          Var<double> sum = 0;
          Var<int> iterations = 0;
          FOR (j, 0, x.size(0)) {
            sum += x(j) * x(j);
            iterations += 1;
            IF (sum > limit(i)) {
              BREAK;
            }
          }
          steps(i) = iterations;
          y(i) = sum * limit(i);
        });
      });
  auto x = active<double>({0.5, 1.5, 0.25, 2, 1, 0.75});
  auto limit = active<double>({0.1, 1, 3, 1000});
  auto y = active(std::vector<double>(4, 0.0));
  auto steps = constant(std::vector<int>(4, 0));
  k(x, limit, y, steps);
  EXPECT_EQ(steps.to_host(), (std::vector<int>{1, 2, 4, 6}));
  expectGradients({x, limit}, {y}, k, x, limit, y, steps);
}

TEST(LoopGradient, ContinueAtEveryThirdStep) {
  Kernel k = kernel("skip", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(1, [&](Index i) {
      Var<double> v = 1;
      FOR (j, 0, x.size(0)) {
        IF (j % 3 == 2) {
          CONTINUE;
        }
        v = v * x(j) + sin(v);
      }
      y(i) = v;
    });
  });
  auto x = active(randomValues(11, 0.5, 1.2)), y = scalarResult();
  expectGradients({x}, {y}, k, x, y);
  EXPECT_EQ(x.grad().to_host()[2], 0);
  EXPECT_NE(x.grad().to_host()[3], 0);
}

TEST(LoopGradient, TriangularLoops) {
  Kernel k =
      kernel("triangle", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> v = x(i);
          FOR (a, 0, i + 1) {
            FOR (b, a, i + 1) {
              v = v + 0.1 * sin(v * x(b)) * x(a);
            }
          }
          y(i) = v;
        });
      });
  auto x = active(randomValues(6, -1, 1)),
       y = active(std::vector<double>(6, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

// RULE: records
TEST(LoopGradient, RaggedLoops) {
  Kernel k = kernel("ragged", [](ArrayRef<int, 1> start, ArrayRef<int, 1> width,
                                 ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(start.size(0) - 1, [&](Index i) {
      Var<double> product = 1;
      FOR (r, start(i), start(i + 1)) {
        Var<double> sum = 0.1;
        FOR (c, 0, width(r)) {
          sum += x(r) * cos(sum * x(c));
        }
        product *= sum;
      }
      y(i) = product;
    });
  });
  auto start = constant<int>({0, 2, 2, 5}),
       width = constant<int>({3, 0, 1, 4, 2});
  auto x = active(randomValues(5, 0.2, 1.5)),
       y = active(std::vector<double>(3, 0.0));
  expectGradients({x}, {y}, k, start, width, x, y);
}

TEST(LoopGradient, ChainOfIndices) {
  Kernel k = kernel("chain", [](ArrayRef<int, 1> next, ArrayRef<double, 1> x,
                                ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<int> at = cast<int>(i);
      Var<double> v = 1;
      FOR (j, 0, 5) {
        v = v * x(at) + 0.5 * v;
        at = next(at);
      }
      y(i) = v;
    });
  });
  auto next = constant<int>({3, 0, 1, 4, 2, 5});
  auto x = active(randomValues(6, 0.5, 1.5)),
       y = active(std::vector<double>(6, 0.0));
  expectGradients({x}, {y}, k, next, x, y);
}

TEST(LoopGradient, FibonacciByIndex) {
  Kernel k =
      kernel("fibonacci", [](ArrayRef<double, 1> f, ArrayRef<double, 1> y) {
        FOR (t, 0, f.size(0) - 2) {
          f(t + 2) = f(t + 1) + f(t);
        }
        y(0) = f(f.size(0) - 1);
      });
  std::vector<double> start(12, 0.0);
  start[0] = start[1] = 1;
  auto f = active(start), y = scalarResult();
  k(f, y);
  EXPECT_EQ(y.to_host()[0], 144);
  y.grad().fill(1);
  k.grad(f, y);
  EXPECT_EQ(f.grad().to_host()[0], 55);
  EXPECT_EQ(f.grad().to_host()[1], 89);
  expectGradients({f}, {y}, k, f, y);
}

TEST(LoopGradient, FibonacciGathers) {
  Kernel k =
      kernel("gathers", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(1, [&](Index i) {
          Var<int> a = 0, b = 1;
          Var<double> v = 0.3;
          FOR (j, 0, 9) {
            v = sin(v) * x(b % cast<int>(x.size(0))) + v;
            Var<int> c = a + b;
            a = b;
            b = c;
          }
          y(i) = v;
        });
      });
  auto x = active(randomValues(7, 0.2, 1)), y = scalarResult();
  expectGradients({x}, {y}, k, x, y);
}

TEST(LoopGradient, AccumulateThenUseNonLinearly) {
  Kernel k =
      kernel("accumulate", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(1, [&](Index i) {
          Var<double> sum = 5;
          FOR (j, 0, x.size(0)) {
            sum += x(j) * x(j);
          }
          y(i) = sum * sin(sum);
        });
      });
  auto x = active(randomValues(8, -1, 1)), y = scalarResult();
  expectGradients({x}, {y}, k, x, y);
}

TEST(LoopGradient, ProductOverALoop) {
  Kernel k =
      kernel("product", [](ArrayRef<double, 1> x, ArrayRef<double, 0> y) {
        parallel(1, [&](Index) {
          Var<double> v = 1;
          FOR (j, 0, x.size(0)) {
            v *= x(j);
          }
          y() += v;
        });
      });
  auto x = active<double>({2, 2, 2});
  Array<double> y = cpu().array<double>({}, grad | dual);
  k(x, y);
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host(), (std::vector<double>{4, 4, 4}));
}

TEST(LoopGradient, StepsOfEitherSign) {
  Kernel k = kernel("steps", [](ArrayRef<double, 1> x, ArrayRef<int, 1> bounds,
                                ArrayRef<double, 1> y) {
    parallel(y.size(0), [&](Index i) {
      Var<double> v = 0.5;
      FOR (j, bounds(3 * i), bounds(3 * i + 1), bounds(3 * i + 2)) {
        v = v * x(j) + 0.3;
      }
      y(i) = v;
    });
  });
  auto x = active(randomValues(8, 0.5, 1.5));
  auto bounds =
      constant<int>({0, 8, 3, 7, -1, -1, 6, 1, -2, 5, 5, 1, 3, 7, -1});
  auto y = active(std::vector<double>(5, 0.0));
  expectGradients({x}, {y}, k, x, bounds, y);
}

/// That all work items take the same steps is seen once a gradient is derived,
/// after what each of them loads; a step may be 0, so a launch measures.
TEST(LoopGradient, StepsThatSerialCodeDecides) {
  Kernel k = kernel("late", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                               Scalar<double> p, ArrayRef<double, 1> y) {
    Var<double> limit = sin(p);
    parallel(x.size(0), [&](Index i) {
      Expr<bool> never = Expr<int>(n(i)) != Expr<int>(n(i));
      Var<double> v = x(i);
      for_(Index(0), Index(6),
           select(cast<double>(never) < limit, Index(2), Index(1)),
           [&](Index) { v = sin(v) + 0.3; });
      y(i) = v;
    });
  });
  auto x = active(randomValues(8, 0.5, 1.5));
  auto n = constant<int>({8, 7, 6, 5, 4, 3, 2, 1});
  auto y = active(std::vector<double>(8, 0.0));
  expectGradients({x}, {y}, k, x, n, 0.7, y);
}

TEST(LoopGradient, ReturnInsideALoop) {
  Kernel k = kernel("early", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, 20) {
        v = v * 1.3 + 0.1 * v * v;
        IF (v > 4) {
          y(i) = v * x(i);
          RETURN;
        }
      }
      y(i) = v;
    });
  });
  auto x = active<double>({0.0003, 0.5, 1.5, 3, 0.001});
  auto y = active(std::vector<double>(5, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

TEST(LoopGradient, WhileInsideForInsideWhile) {
  Kernel k = kernel("nested", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      Var<int> outer = 0;
      WHILE ((outer < 3) & (v < 50)) {
        FOR (j, 0, outer + 1) {
          Var<double> w = v;
          WHILE (w > 1) {
            w = w * 0.6;
          }
          v = v + w * x(i);
          IF (v > 20) {
            BREAK;
          }
        }
        outer += 1;
      }
      y(i) = v;
    });
  });
  auto x = active<double>({0.3, 1.7, 5.3, 12.1});
  auto y = active(std::vector<double>(4, 0.0));
  expectGradients({x}, {y}, k, x, y);
}

// RULE: serial-values
TEST(LoopGradient, SerialValuesFlowIntoRangesAndBack) {
  Kernel k =
      kernel("serial", [](ArrayRef<double, 1> x, ArrayRef<double, 1> p,
                          ArrayRef<double, 1> y, ArrayRef<double, 0> loss) {
        Var<double> scale = 1;
        FOR (j, 0, p.size(0)) {
          scale = scale * sin(p(j)) + p(j);
        }
        parallel(x.size(0), [&](Index i) { y(i) = scale * x(i) * x(i); });
        Var<double> shift = scale * p(0);
        parallel(x.size(0), [&](Index i) { loss() += sin(y(i) + shift); });
      });
  auto x = active(randomValues(6, -1, 1)), p = active(randomValues(3, 0.5, 1));
  auto y = active(std::vector<double>(6, 0.0));
  Array<double> loss = cpu().array<double>({}, grad | dual);
  expectGradients({x, p}, {loss, y}, k, x, p, y, loss);
}

} // namespace
