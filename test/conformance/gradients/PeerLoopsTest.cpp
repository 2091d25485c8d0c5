/// Loops and jumps on which other systems are known to have returned wrong
/// gradients, or none. Every answer has a closed form.

#include "conformance/ComplexStep.h"
#include "conformance/Gradients.h"

#include <algorithm>

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;

/// x / (1 + n x): v <- v / (1 + v), n times.
double slopeAfter(double x, double n) {
  return 1 / ((1 + n * x) * (1 + n * x));
}

TEST(PeerLoops, AProductGivesEachFactorsPartial) {
  Kernel k = kernel("product", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                  ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Var<double> product = 1;
      FOR (j, 0, n(i)) {
        product *= x(j);
      }
      y(i) = product;
    });
  });
  auto x = active<double>({2, 2, 2}), y = scalarResult();
  expectClosedForm({x}, {y}, {{4, 4, 4}}, k, x, constant<int>({3}), y);
}

TEST(PeerLoops, AnAccumulatorMayStartAnywhereAndBeUsedNonLinearly) {
  Kernel k =
      kernel("square_of_sum", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                 ArrayRef<double, 1> y) {
        parallel(y.size(), [&](Index i) {
          Var<double> sum = 5;
          FOR (j, 0, n(i)) {
            sum += x(j);
          }
          y(i) = sum * sum;
        });
      });
  auto x = active<double>({1, 2, 3}), y = scalarResult();
  expectClosedForm({x}, {y}, {{22, 22, 22}}, k, x, constant<int>({3}), y);
}

TEST(PeerLoops, AValueFromBeforeTheLoopIsUsedAfterIt) {
  Kernel k = kernel("around", [](ArrayRef<double, 1> x, ArrayRef<double, 1> s,
                                 Scalar<int> n, ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      Expr<double> before = x(i) * x(i);
      Var<double> sum = 0;
      FOR (j, 0, n) {
        sum += sin(s(j));
      }
      y(i) = before * sum;
    });
  });
  auto x = active<double>({3, -2}), s = active<double>({0.5, 1.0, 1.5});
  auto y = active<double>({0, 0});
  double sum = std::sin(0.5) + std::sin(1.0) + std::sin(1.5);
  expectClosedForm(
      {x, s}, {y},
      {{6 * sum, -4 * sum},
       {13 * std::cos(0.5), 13 * std::cos(1.0), 13 * std::cos(1.5)}},
      k, x, s, 3, y);
}

/// The winner differs from work item to work item: where x < 0, it is the
/// negative coefficient.
TEST(PeerLoops, AMaximumWithContinueFindsEachWorkItemsWinner) {
  Kernel k = kernel("winner", [](ArrayRef<double, 2> c, ArrayRef<double, 1> x,
                                 ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> best = -1e20;
      FOR (p, 0, c.size(0)) {
        FOR (q, 0, c.size(1)) {
          IF (c(p, q) == 0.0) {
            CONTINUE;
          }
          Expr<double> v = x(i) * c(p, q) * cast<double>(p + q + 2);
          IF (v <= best) {
            CONTINUE;
          }
          best = v;
        }
      }
      y(i) = best;
    });
  });
  auto c = constant<double>({0, 1, 0, 3, 0, -2, 0, 0, -1}, {3, 3});
  auto x = active<double>({0.5, -0.5, 2, -3}), y = active<double>({0, 0, 0, 0});
  // 3 * (1 + 0 + 2) beats 1 * 3; -2 * (1 + 2 + 2) beats -1 * 6.
  expectClosedForm({x}, {y}, {{9, -10, 9, -10}}, k, c, x, y);
}

struct Quaternion {
  Expr<double> w, x, y, z;
};

template <class Q> Q times(const Q &a, const Q &b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
          a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
          a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

struct ComplexQuaternion {
  Complex w, x, y, z;
};

/// Bodies of a branch, and in each its joints: a loop in a loop, with bounds
/// from memory, around a rotation that both carry.
TEST(PeerLoops, RotationsChainThroughNestedLoops) {
  Kernel k =
      kernel("chain", [](ArrayRef<int, 1> bodies, ArrayRef<int, 1> joints,
                         ArrayRef<double, 2> axis, ArrayRef<double, 1> angle,
                         ArrayRef<double, 2> pose) {
        parallel(pose.size(0), [&](Index i) {
          Var<double> w = 1, x = 0, y = 0, z = 0;
          FOR (body, bodies(i), bodies(i + 1)) {
            FOR (j, joints(body), joints(body + 1)) {
              Expr<double> s = sin(0.5 * angle(j)), c = cos(0.5 * angle(j));
              Quaternion rotation{c, s * axis(j, 0), s * axis(j, 1),
                                  s * axis(j, 2)};
              Quaternion q = times(Quaternion{w, x, y, z}, rotation);
              w = q.w;
              x = q.x;
              y = q.y;
              z = q.z;
            }
          }
          pose(i, 0) = w;
          pose(i, 1) = 2.0 * x;
          pose(i, 2) = 3.0 * y;
          pose(i, 3) = w * z;
        });
      });
  std::vector<int> bodies{0, 3, 3, 5}, joints{0, 2, 2, 3, 6, 7};
  Values axes{1, 0, 0, 0, 1, 0,   0,   0, 1, 0.6, 0.8,
              0, 0, 1, 0, 0, 0.6, 0.8, 1, 0, 0};
  Values angles{0.3, -0.7, 1.1, 0.4, 2.1, -1.3, 0.9};
  auto sumOfPoses = [&](const std::vector<Complex> &angle) {
    Complex sum = 0;
    for (int i = 0; i < 3; ++i) {
      ComplexQuaternion q{1, 0, 0, 0};
      for (int j = joints[bodies[i]]; j < joints[bodies[i + 1]]; ++j) {
        Complex s = std::sin(0.5 * angle[j]), c = std::cos(0.5 * angle[j]);
        q = times(
            q, {c, s * axes[3 * j], s * axes[3 * j + 1], s * axes[3 * j + 2]});
      }
      sum += q.w + 2.0 * q.x + 3.0 * q.y + q.w * q.z;
    }
    return sum;
  };
  auto angle = active(angles), pose = active(Values(12, 0.0), {3, 4});
  expectClosedForm({angle}, {pose}, {complexStep(sumOfPoses, angles)}, k,
                   constant(bodies), constant(joints), constant(axes, {7, 3}),
                   angle, pose);
}

/// Divides a vector by its norm.
TEST(PeerLoops, ANormIsUsedAfterTheLoopThatAddsItUp) {
  Kernel k =
      kernel("normalise", [](ArrayRef<double, 2> x, ArrayRef<double, 2> y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> sum = 0;
          FOR (j, 0, x.size(1)) {
            sum += x(i, j) * x(i, j);
          }
          Expr<double> norm = sqrt(sum);
          FOR (j, 0, x.size(1)) {
            y(i, j) = x(i, j) / norm;
          }
        });
      });
  Values start{3, 4, 12, 1, -2, 2};
  Values expected(6);
  for (int i = 0; i < 2; ++i) {
    const double *v = &start[3 * i];
    double norm = std::hypot(v[0], v[1], v[2]), sum = v[0] + v[1] + v[2];
    for (int j = 0; j < 3; ++j)
      expected[3 * i + j] = 1 / norm - v[j] * sum / (norm * norm * norm);
  }
  auto x = active(start, {2, 3}), y = active(Values(6, 0.0), {2, 3});
  expectClosedForm({x}, {y}, {expected}, k, x, y);
}

/// A return map of perfect plasticity: element i + 1 of the history is made
/// from element i.
// RULE: final-state
TEST(PeerLoops, AHistoryIsReadOneStepAfterItsStore) {
  static constexpr double stiffness = 1000, limit = 2;
  constexpr int steps = 60;
  Kernel k = kernel("plasticity", [](ArrayRef<double, 1> strain,
                                     ArrayRef<double, 0> amplitude,
                                     ArrayRef<double, 1> plastic,
                                     ArrayRef<double, 0> sum) {
    FOR (i, 0, strain.size()) {
      Expr<double> trial = stiffness * (amplitude() * strain(i) - plastic(i));
      Var<double> d = 0;
      IF (abs(trial) > limit) {
        d = (abs(trial) - limit) / stiffness;
        sum() += d;
      }
      plastic(i + 1) = plastic(i) + select(trial > 0, d, -d);
    }
  });
  Values strain(steps);
  for (int i = 0; i < steps; ++i)
    strain[i] = std::sin(2 * M_PI * i / steps);
  auto model = [&](const std::vector<Complex> &amplitude) {
    Complex plastic = 0, sum = 0;
    for (double e : strain) {
      Complex trial = stiffness * (amplitude[0] * e - plastic);
      Complex size = trial.real() > 0 ? trial : -trial;
      if (size.real() <= limit)
        continue;
      Complex d = (size - limit) / stiffness;
      sum += d;
      plastic += trial.real() > 0 ? d : -d;
    }
    return sum;
  };
  double slope = complexStep(model, {0.0045})[0];
  EXPECT_NEAR(slope, 3.895472, 1e-6);
  Array<double> amplitude = cpu().array<double>({}, grad | dual);
  Array<double> sum = cpu().array<double>({}, grad | dual);
  amplitude.fill(0.0045);
  auto plastic = active(Values(steps + 1, 0.0));
  expectClosedForm({amplitude}, {sum}, {{slope}}, k, constant(strain),
                   amplitude, plastic, sum);
}

TEST(PeerLoops, DepthsFromAFewToTenThousandIterations) {
  Kernel k = kernel("deep", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                               ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i), iterations = 0.0;
      FOR (j, 0, n(i)) {
        v = v / (1.0 + v);
        iterations += 1.0;
      }
      y(i) = v * iterations;
    });
  });
  std::vector<int> depths{1, 30, 31, 32, 146, 147, 10'000};
  Values start = randomValues(depths.size(), 0.5, 2), expected;
  for (size_t i = 0; i < depths.size(); ++i)
    expected.push_back(depths[i] * slopeAfter(start[i], depths[i]));
  auto x = active(start), y = active(Values(depths.size(), 0.0));
  expectClosedForm({x}, {y}, {expected}, k, x, constant(depths), y);
}

/// Layers of 2, 32, 32 and 3 values: a loop over the layers, over the values of
/// a layer, and over what they are made from, all with bounds from memory.
TEST(PeerLoops, LayersOfANetworkAreLoopsInLoops) {
  Kernel k =
      kernel("network", [](ArrayRef<int, 1> width, ArrayRef<int, 1> first,
                           ArrayRef<double, 1> weight, ArrayRef<double, 3> h,
                           ArrayRef<double, 0> loss) {
        parallel(h.size(0), [&](Index s) {
          FOR (l, 0, width.size() - 1) {
            FOR (o, 0, width(l + 1)) {
              Index row = first(l) + o * (width(l) + 1);
              Var<double> sum = weight(row + width(l));
              FOR (i, 0, width(l)) {
                sum += weight(row + i) * h(s, l, i);
              }
              IF (l < width.size() - 2) {
                sum = tanh(sum);
              }
              h(s, l + 1, o) = sum;
            }
          }
          FOR (o, 0, width(width.size() - 1)) {
            loss() += h(s, width.size() - 1, o) * h(s, width.size() - 1, o);
          }
        });
      });
  std::vector<int> width{2, 32, 32, 3}, first{0};
  for (int l = 0; l < 3; ++l)
    first.push_back(first[l] + width[l + 1] * (width[l] + 1));
  Values weights = randomValues(first[3], -0.5, 0.5),
         inputs{0.3, -0.8, 1.1, 0.2};
  auto network = [&](const std::vector<Complex> &w) {
    Complex loss = 0;
    for (int s = 0; s < 2; ++s) {
      std::vector<Complex> h{inputs[2 * s], inputs[2 * s + 1]};
      for (int l = 0; l < 3; ++l) {
        std::vector<Complex> next(width[l + 1]);
        for (int o = 0; o < width[l + 1]; ++o) {
          const Complex *row = &w[first[l] + o * (width[l] + 1)];
          next[o] = row[width[l]];
          for (int i = 0; i < width[l]; ++i)
            next[o] += row[i] * h[i];
          if (l < 2)
            next[o] = std::tanh(next[o]);
        }
        h = next;
      }
      for (Complex v : h)
        loss += v * v;
    }
    return loss;
  };
  Values start(2 * 4 * 32, 0.0);
  for (int s = 0; s < 2; ++s)
    std::copy_n(&inputs[2 * s], 2, &start[s * 4 * 32]);
  auto weight = active(weights), h = active(start, {2, 4, 32});
  Array<double> loss = cpu().array<double>({}, grad | dual);
  expectClosedForm({weight}, {loss}, {complexStep(network, weights)}, k,
                   constant(width), constant(first), weight, h, loss);
}

TEST(PeerLoops, ALoopMayStartBelowZero) {
  Kernel k =
      kernel("convolve", [](ArrayRef<int, 1> radius, ArrayRef<double, 1> w,
                            ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(y.size(), [&](Index i) {
          Expr<int64_t> r = cast<int64_t>(radius(i));
          Var<double> sum = 0;
          FOR (d, -r, r + 1) {
            Index at = i + d;
            IF ((at >= 0) & (at < x.size())) {
              sum += w(d + 8) * x(at) * x(at);
            }
          }
          y(i) = sum;
        });
      });
  std::vector<int> radius{8, 0, 2, 1, 3};
  Values xs = randomValues(5, -1, 1), ws = randomValues(17, 0.5, 1), dx(5),
         dw(17);
  for (int i = 0; i < 5; ++i)
    for (int d = -radius[i]; d <= radius[i]; ++d)
      if (int at = i + d; at >= 0 && at < 5) {
        dx[at] += 2 * ws[d + 8] * xs[at];
        dw[d + 8] += xs[at] * xs[at];
      }
  auto x = active(xs), w = active(ws), y = active(Values(5, 0.0));
  expectClosedForm({x, w}, {y}, {dx, dw}, k, constant(radius), w, x, y);
}

TEST(PeerLoops, WhatFollowsALoopThatMayReturnIsReversed) {
  Kernel k = kernel("early", [](ArrayRef<double, 2> x, ArrayRef<int, 1> leaves,
                                ArrayRef<double, 1> y) {
    parallel(y.size(), [&](Index i) {
      FOR (j, 0, 3) {
        IF (j == leaves(i)) {
          y(i) = 10.0 * x(i, 1);
          RETURN;
        }
      }
      y(i) = x(i, 0) * x(i, 0);
    });
  });
  auto x = active<double>({0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, {3, 2});
  auto y = active<double>({0, 0, 0});
  expectClosedForm({x}, {y}, {{0.2, 0, 0, 10, 1.0, 0}}, k, x,
                   constant<int>({-1, 2, 7}), y);
}

/// A loop that asks at its end: it runs at least once.
TEST(PeerLoops, ALoopWithItsConditionAtTheEnd) {
  Kernel k =
      kernel("do_while", [](ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          Var<bool> again = true;
          WHILE (again) {
            v = v * v;
            again = v < 100;
          }
          y(i) = v;
        });
      });
  // Squared 1, 1, 3 and 4 times.
  Values start{50, -10, 2, 1.5}, expected{100, -20, 0, 0};
  expected[2] = 8 * std::pow(2, 7);
  expected[3] = 16 * std::pow(1.5, 15);
  auto x = active(start), y = active(Values(4, 0.0));
  expectClosedForm({x}, {y}, {expected}, k, x, y);
}

TEST(PeerLoops, TheIterationThatBreaksCountsTheNextOnesDoNot) {
  Kernel k = kernel("broken", [](ArrayRef<double, 1> u, ArrayRef<double, 1> y) {
    parallel(u.size(), [&](Index i) {
      Var<double> sum = 0;
      FOR (j, 1, 5) {
        sum += cast<double>(j) * u(i);
        IF (j == 2) {
          BREAK;
        }
      }
      y(i) = sum;
    });
  });
  auto u = active<double>({3}), y = scalarResult();
  expectClosedForm({u}, {y}, {{3}}, k, u, y);
}

TEST(PeerLoops, AnIterationThatEndsWithContinueCounts) {
  Kernel k =
      kernel("continued", [](ArrayRef<double, 1> u, ArrayRef<double, 1> y) {
        parallel(u.size(), [&](Index i) {
          Var<double> sum = 11.0 * u(i);
          FOR (j, 0, 3) {
            sum += u(i) * cast<double>(j);
            CONTINUE;
          }
          y(i) = sum;
        });
      });
  auto u = active<double>({3}), y = scalarResult();
  expectClosedForm({u}, {y}, {{14}}, k, u, y);
}

/// The counter advances in the middle of the body, by what the data says.
TEST(PeerLoops, ALoopMayAdvanceItsCounterItself) {
  Kernel k =
      kernel("strides", [](ArrayRef<int, 1> stride, ArrayRef<double, 1> x,
                           ArrayRef<double, 1> y) {
        parallel(y.size(), [&](Index i) {
          Var<int64_t> at = 0;
          Var<double> product = 1;
          WHILE (at < x.size()) {
            product *= x(at);
            at += cast<int64_t>(stride(i));
            product *= 2.0;
          }
          y(i) = product;
        });
      });
  auto x = active<double>({2, 3, 5, 7}), y = active<double>({0, 0});
  // 16 * 2 * 3 * 5 * 7 with stride 1, 4 * 2 * 7 with stride 3.
  expectClosedForm({x}, {y}, {{1680 + 28, 1120, 672, 480 + 8}}, k,
                   constant<int>({1, 3}), x, y);
}

TEST(PeerLoops, SquaresAreIteratedAsOftenAsTheDataSays) {
  Kernel k = kernel("squares", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                                  ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        v = v * v;
      }
      y(i) = v;
    });
  });
  std::vector<int> iterations{0, 1, 3, 6, 10};
  Values start{5, 3, -1.5, 1.1, 0.999}, expected;
  for (size_t i = 0; i < iterations.size(); ++i) {
    double power = std::pow(2, iterations[i]);
    expected.push_back(power * std::pow(start[i], power - 1));
  }
  auto x = active(start), y = active(Values(5, 0.0));
  expectClosedForm({x}, {y}, {expected}, k, x, constant(iterations), y);
}

/// v = a + cos(v) / 2, so dv/da = 1 / (1 + sin(v) / 2).
TEST(PeerLoops, AFixedPointHasTheDerivativeOfItsEquation) {
  Kernel k =
      kernel("fixed_point", [](ArrayRef<double, 1> a, ArrayRef<double, 1> y) {
        parallel(a.size(), [&](Index i) {
          Var<double> v = 0;
          Var<int> iterations = 0;
          WHILE (iterations < 100) {
            v = a(i) + 0.5 * cos(v);
            iterations += 1;
          }
          y(i) = v;
        });
      });
  Values start{-1, 0, 0.4, 2.5}, expected;
  for (double a : start) {
    double v = 0;
    for (int iteration = 0; iteration < 200; ++iteration)
      v = a + 0.5 * std::cos(v);
    expected.push_back(1 / (1 + 0.5 * std::sin(v)));
  }
  auto a = active(start), y = active(Values(4, 0.0));
  expectClosedForm({a}, {y}, {expected}, k, a, y);
}

TEST(PeerLoops, ManyWorkItemsOfManyIterationsNeedLittleMemory) {
  constexpr int workItems = 100'000, iterations = 100;
  Kernel k = kernel("many", [](ArrayRef<double, 1> x, ArrayRef<int, 1> n,
                               ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(0)) {
        v = v / (1.0 + v);
      }
      y(i) = v;
    });
  });
  Device device = openDevice({.memory_limit = 8 << 20});
  auto x = device.array<double>({workItems}, grad);
  auto y = device.array<double>({workItems}, grad);
  auto n = device.array<int>({1});
  Values start = randomValues(workItems, 0.5, 2);
  x.from_host(start);
  n.fill(iterations);
  y.grad().fill(1);
  k(x, n, y);
  k.grad(x, n, y);
  Values gradient = x.grad().to_host();
  double worst = 0;
  for (int i = 0; i < workItems; ++i)
    worst = std::max(
        worst, std::abs(gradient[i] / slopeAfter(start[i], iterations) - 1));
  EXPECT_LT(worst, 1e-13);
}

TEST(PeerLoops, LoopsMayHaveNoIterations) {
  Kernel k = kernel("empty", [](ArrayRef<int, 1> outer, ArrayRef<int, 1> inner,
                                ArrayRef<double, 1> x, ArrayRef<double, 1> y) {
    parallel(x.size(), [&](Index i) {
      Var<double> v = x(i);
      FOR (a, 0, outer(i)) {
        FOR (b, 0, inner(a)) {
          v = v * x(i);
        }
        Var<int> c = 0;
        WHILE (c < inner(a) - 2) {
          v = v * x(i);
          c += 1;
        }
      }
      y(i) = v;
    });
  });
  // Powers of x: 1, 1 + 0, 1 + 0 + 3 + 1, 1 + 0 + 3 + 1 + 0 + 1.
  Values start{1.5, -2, 1.25, 0.75}, expected;
  for (auto [power, x] : {std::pair(1, 1.5), {1, -2}, {5, 1.25}, {6, 0.75}})
    expected.push_back(power * std::pow(x, power - 1));
  auto x = active(start), y = active(Values(4, 0.0));
  expectClosedForm({x}, {y}, {expected}, k, constant<int>({0, 1, 2, 4}),
                   constant<int>({0, 3, -5, 1}), x, y);
  auto none = constant<int>({-1, 0, 0, -7});
  expectClosedForm({x}, {y}, {Values(4, 1.0)}, k, none, none, x, y);
}

} // namespace
