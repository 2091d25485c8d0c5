/// Kernels that overwrite what they read: their gradients from the state before
/// the launch, and from a recording.

#include "Labels.h"
#include "conformance/ComplexStep.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;
using X = ArrayRef<double, 1>;

void expectNearByLargest(const Values &got, const Values &want,
                         double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double scale = 1;
  for (double value : want)
    scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * scale) << "element " << i;
}

/// Expects that gradients from the state before the launch, and from a
/// recording, agree with forward mode in every entry of every array, that the
/// first leaves all values as they were, and that the second keeps the result.
template <class... A>
void expectInPlace(std::vector<Array<double>> arrays, const Kernel &kernel,
                   const A &...arguments) {
  SCOPED_TRACE(kernel.name());
  GradientCase c(arrays, arrays);
  auto seed = [&] {
    for (size_t a = 0; a < arrays.size(); ++a)
      arrays[a].grad().from_host(c.weights(a));
  };
  auto gradients = [&] {
    std::vector<Values> all;
    for (Array<double> &array : arrays)
      all.push_back(array.grad().to_host());
    return all;
  };
  seed();
  kernel.grad(initial_state, arguments...);
  std::vector<Values> fromStart = gradients();
  for (size_t a = 0; a < arrays.size(); ++a)
    EXPECT_EQ(arrays[a].to_host(), c.start[a]) << "array " << a;

  Tape tape;
  {
    auto recording = tape.record();
    kernel(arguments...);
  }
  std::vector<Values> results;
  for (Array<double> &array : arrays)
    results.push_back(array.to_host());
  seed();
  tape.backward();
  EXPECT_EQ(gradients(), fromStart);
  for (size_t a = 0; a < arrays.size(); ++a)
    EXPECT_EQ(arrays[a].to_host(), results[a]) << "array " << a;

  for (size_t a = 0; a < arrays.size(); ++a)
    for (size_t entry = 0; entry < fromStart[a].size(); ++entry) {
      double forward = forwardEntry(c, a, entry, kernel, arguments...);
      EXPECT_NEAR(fromStart[a][entry], forward,
                  1e-11 * std::max(1.0, std::abs(forward)))
          << "array " << a << ", entry " << entry;
    }
  c.reset();
}

class InPlace : public testing::Test {
protected:
  Kernel times = kernel("times", [](X a, X x) {
    parallel(a.size(), [&](Index i) { a(i) = a(i) * x(i); });
  });
  Kernel halve = kernel("halve", [](X r) {
    parallel(r.size(), [&](Index i) {
      WHILE (r(i) > 1) {
        r(i) = 0.5 * r(i) * r(i) / (r(i) + 1.0);
      }
    });
  });
  Array<double> a = active<double>({2, -3, 0.5}),
                x = active<double>({5, 7, -11});
};

TEST_F(InPlace, AProductGivesBothFactorsTheirPartial) {
  a.grad().from_host({1, 2, 3});
  times.grad(initial_state, a, x);
  EXPECT_EQ(a.grad().to_host(), (Values{5, 14, -33}));
  EXPECT_EQ(x.grad().to_host(), (Values{2, -6, 1.5}));
  EXPECT_EQ(a.to_host(), (Values{2, -3, 0.5}));
}

TEST_F(InPlace, ARecordingReversesProductsOfProducts) {
  Tape tape;
  {
    auto recording = tape.record();
    for (int iteration = 0; iteration < 4; ++iteration)
      times(a, x);
  }
  a.grad().fill(1);
  tape.backward();
  Values toA, toX, end;
  for (auto [a, x] : {std::pair(2.0, 5.0), {-3, 7}, {0.5, -11}}) {
    toA.push_back(std::pow(x, 4));
    toX.push_back(4 * a * std::pow(x, 3));
    end.push_back(a * std::pow(x, 4));
  }
  EXPECT_EQ(a.grad().to_host(), toA);
  EXPECT_EQ(x.grad().to_host(), toX);
  EXPECT_EQ(a.to_host(), end);
}

/// The condition, too, reads what the loop overwrites.
TEST_F(InPlace, ALoopMayHalveItsOwnCondition) {
  Values start{0.75, 3, 100}, slopes;
  for (double v : start) {
    double slope = 1;
    for (; v > 1; v = 0.5 * v * v / (v + 1))
      slope *= 0.5 * (v * v + 2 * v) / ((v + 1) * (v + 1));
    slopes.push_back(slope);
  }
  auto r = active(start);
  r.grad().fill(1);
  halve.grad(initial_state, r);
  expectNearByLargest(r.grad().to_host(), slopes, 1e-14);
  EXPECT_EQ(r.to_host(), start);
  Tape tape;
  {
    auto recording = tape.record();
    halve(r);
    halve(r); // has no iterations
  }
  r.grad().fill(1);
  tape.backward();
  expectNearByLargest(r.grad().to_host(), slopes, 1e-14);
}

/// Where a work item finds its element only the data tells.
// RULE: initial-state
TEST_F(InPlace, ElementsMayBeFoundByIndex) {
  Kernel k = kernel("permuted", [](ArrayRef<int, 1> at, X a) {
    parallel(at.size(), [&](Index i) {
      FOR (j, 0, 3) {
        a(at(i)) = sin(a(at(i))) * a(at(i));
      }
    });
  });
  auto a = active<double>({1.5, -2, 0.5, 9});
  expectInPlace({a}, k, constant<int>({2, 0, 1}), a);
}

// RULE: parts, reversed-parts
TEST_F(InPlace, PartsSeeTheirOwnVersions) {
  Kernel k = kernel("parts", [](X a, X b, ArrayRef<double, 0> s) {
    parallel(a.size(), [&](Index i) { a(i) = a(i) * a(i); });
    s() = s() * s() + a(0);
    Expr<double> scale = s();
    parallel(a.size(), [&](Index i) { b(i) = sin(a(i)) * b(i) * scale; });
    a(1) = b(0) * a(1);
    parallel(a.size(), [&](Index i) { a(i) = exp(0.1 * a(i)) * b(i); });
    s() = s() * a(2);
  });
  auto a = active<double>({0.5, 1.5, -0.8}), b = active<double>({1, 2, 3});
  Array<double> s = cpu().array<double>({}, grad | dual);
  s.fill(0.7);
  expectInPlace({a, b, s}, k, a, b, s);
}

/// A range that nothing comes of is a part like others.
// RULE: parts
TEST_F(InPlace, ARangeWithoutEffectDoesNotMoveVersions) {
  Kernel k = kernel("idle", [](X a) {
    parallel(a.size(), [&](Index i) { a(i) = a(i) * a(i); });
    parallel(a.size(), [&](Index i) {
      Var<double> v = a(i);
      FOR (j, 0, 3) {
        v = v * a(i);
      }
    });
    parallel(a.size(), [&](Index i) { a(i) = sin(a(i)) * a(i); });
    parallel(a.size(), [&](Index i) {
      Var<double> v = sin(a(i));
      WHILE (v > 0.1) {
        v = v * 0.5;
      }
    });
    parallel(a.size(), [&](Index i) { a(i) = exp(a(i)); });
  });
  auto a = active<double>({0.5, 1.5, -0.8});
  expectInPlace({a}, k, a);
}

/// A moving average that every iteration overwrites, and reads in the next.
TEST_F(InPlace, AnAverageInMemoryRunsThroughALoop) {
  Kernel k = kernel("average", [](X x, ArrayRef<double, 0> mean, X out) {
    FOR (t, 0, x.size()) {
      mean() = 0.9 * mean() + 0.1 * x(t) * mean() * mean();
      out(t) = mean() * x(t);
    }
  });
  auto x = active<double>({0.5, -1, 2, 3}), out = active<double>({0, 0, 0, 0});
  Array<double> mean = cpu().array<double>({}, grad | dual);
  mean.fill(1.25);
  expectInPlace({x, mean, out}, k, x, mean, out);
}

/// A particle looks up its cell, and moves on.
TEST_F(InPlace, AnIndexComesFromAValueThatIsOverwritten) {
  Kernel k = kernel("drift", [](X x, X force, X y) {
    parallel(x.size(), [&](Index i) {
      FOR (t, 0, 4) {
        Index cell = clamp(cast<int64_t>(x(i)), Index(0), force.size() - 1);
        y(i) = y(i) + force(cell) * x(i);
        x(i) = x(i) + 0.7 * force(cell) * x(i);
      }
    });
  });
  auto x = active<double>({0.4, 1.3, 2.6}), y = active<double>({0, 1, 2});
  auto force = active<double>({0.9, 0.4, -0.3, 0.2});
  expectInPlace({x, force, y}, k, x, force, y);
}

/// Integers that steer are overwritten as well.
TEST_F(InPlace, CountersInMemoryMayCountDown) {
  Kernel k = kernel("count_down", [](ArrayRef<int, 1> n, X a) {
    parallel(a.size(), [&](Index i) {
      WHILE (n(i) > 0) {
        n(i) = n(i) - 1;
        IF (n(i) % 2 == 1) {
          CONTINUE;
        }
        a(i) = a(i) * a(i) + 0.1 * cast<double>(n(i));
      }
    });
  });
  auto a = active<double>({0.5, 1.25, -0.75});
  auto n = constant<int>({5, 0, 4});
  a.grad().fill(1);
  k.grad(initial_state, n, a);
  EXPECT_EQ(n.to_host(), (std::vector<int>{5, 0, 4}));
  Values want;
  for (auto [count, v] : {std::pair(5, 0.5), {0, 1.25}, {4, -0.75}}) {
    double slope = 1;
    while (count-- > 0)
      if (count % 2 != 1) {
        slope *= 2 * v;
        v = v * v + 0.1 * count;
      }
    want.push_back(slope);
  }
  expectNearByLargest(a.grad().to_host(), want, 1e-13);
}

// RULE: parts, reversed-parts
TEST_F(InPlace, ABoundOfALaterRangeMayBeOverwritten) {
  Kernel k = kernel("extent", [](ArrayRef<int, 1> n, X a) {
    parallel(cast<int64_t>(n(0)), [&](Index i) { a(i) = a(i) * a(i); });
    n(0) = n(0) - 1;
    parallel(cast<int64_t>(n(0)), [&](Index i) { a(i) = a(i) * a(i) * a(i); });
    n(0) = 99;
  });
  auto a = active<double>({1.5, 0.5, 2});
  a.grad().fill(1);
  auto n = constant<int>({2});
  k.grad(initial_state, n, a);
  expectNearByLargest(a.grad().to_host(), {6 * std::pow(1.5, 5), 1, 1}, 1e-14);
  EXPECT_EQ(n.to_host()[0], 2);
}

/// The element is added to, read and overwritten by the one work item that owns
/// it.
// RULE: initial-state
TEST_F(InPlace, OwnSumsAndStoresMix) {
  auto body = [](X a, X v) {
    parallel(a.size(), [&](Index i) {
      a(i) += 0.5 * v(i);
      v(i) = v(i) - 0.1 * a(i) * a(i) * a(i);
      a(i) += 0.5 * v(i);
      a(i) = a(i) * v(i);
    });
  };
  auto a = active<double>({0.5, 1.5, -0.8}), v = active<double>({1, 2, 3});
  expectInPlace({a, v}, kernel("plain", body), a, v);
  expectInPlace({a, v}, kernel("deterministic", body, {.deterministic = true}),
                a, v);
  expectInPlace({a, v}, kernel("debug", body, {.debug = true}), a, v);
}

// RULE: initial-state
TEST_F(InPlace, JumpsLeaveElementsAsTheyAre) {
  Kernel k = kernel("jumps", [](X limit, X a) {
    parallel(a.size(), [&](Index i) {
      IF (a(i) < 0) {
        RETURN;
      }
      FOR (j, 0, 10) {
        a(i) = a(i) * a(i) + 0.05;
        IF (a(i) > limit(i)) {
          BREAK;
        }
        IF (j % 3 == 1) {
          CONTINUE;
        }
        a(i) = 1.1 * sin(a(i));
      }
      a(i) = a(i) / limit(i);
    });
  });
  auto limit = active<double>({5, 2, 0.2, 1}),
       a = active<double>({0.9, 1.4, 0.6, -3});
  expectInPlace({limit, a}, k, limit, a);
}

/// Gauss-Seidel: serial code reads what it has stored in earlier iterations,
/// and what it will store in later ones.
// RULE: initial-state
TEST_F(InPlace, SerialSweepsReadOldAndNewElements) {
  Kernel k = kernel("sweeps", [](X a, Scalar<int> count) {
    FOR (t, 0, count) {
      FOR (i, 1, a.size() - 1) {
        a(i) = 0.5 * a(i) + 0.3 * sin(a(i - 1)) * cos(a(i + 1));
      }
    }
  });
  auto a = active(randomValues(6, -1, 1));
  expectInPlace({a}, k, a, 5);
}

/// A string with a force that grows with the cube of its displacement, held at
/// both ends: next(i) from this(i) and its neighbours, and before(i).
template <class T>
T wave(const T &before, const T &left, const T &here, const T &right) {
  return 2.0 * here - before + 0.25 * (left - 2.0 * here + right) -
         0.01 * here * here * here;
}

constexpr int points = 24, steps = 1000;

class Wave : public testing::Test {
protected:
  static Values shape() {
    Values start(points);
    for (int i = 0; i < points; ++i)
      start[i] =
          std::sin(M_PI * i / (points - 1)) * (1 + 0.1 * std::cos(3.0 * i));
    return start;
  }

  /// What the last shape is multiplied with.
  Values weights = randomValues(points, -1, 1, 5);
  Values start = shape();

  /// By the initial shape, in plain C++; the string starts at rest.
  Values reference() const {
    return complexStep(
        [&](const std::vector<Complex> &x) {
          std::vector<Complex> here = x, before = x;
          for (int t = 0; t < steps; ++t) {
            for (int i = 1; i < points - 1; ++i)
              before[i] = wave(before[i], here[i - 1], here[i], here[i + 1]);
            std::swap(here, before);
          }
          Complex sum = 0;
          for (int i = 0; i < points; ++i)
            sum += weights[i] * here[i];
          return sum;
        },
        start);
  }

  /// With every version in memory: rows 0 and 1 hold the initial shape.
  Values timeIndexed() const {
    Kernel k = kernel("history", [](ArrayRef<double, 2> u) {
      FOR (t, 1, u.size(0) - 1) {
        FOR (i, 1, u.size(1) - 1) {
          u(t + 1, i) = wave<Expr<double>>(u(t - 1, i), u(t, i - 1), u(t, i),
                                           u(t, i + 1));
        }
        u(t + 1, 0) = u(t, 0);
        u(t + 1, u.size(1) - 1) = u(t, u.size(1) - 1);
      }
    });
    Values rows((steps + 2) * points), seeds(rows.size());
    std::copy(start.begin(), start.end(), rows.begin());
    std::copy(start.begin(), start.end(), rows.begin() + points);
    std::copy(weights.begin(), weights.end(), seeds.end() - points);
    auto u = active(rows, {steps + 2, points});
    k(u);
    u.grad().from_host(seeds);
    k.grad(u);
    Values gradient = u.grad().to_host(), sum(points);
    for (int i = 0; i < points; ++i)
      sum[i] = gradient[i] + gradient[points + i];
    return sum;
  }

  static Values sum(const Values &a, const Values &b) {
    Values sum(a);
    for (size_t i = 0; i < b.size(); ++i)
      sum[i] += b[i];
    return sum;
  }
};

TEST_F(Wave, AHistoryHasTheGradientOfTheFormula) {
  expectNearByLargest(timeIndexed(), reference(), 1e-10);
}

TEST_F(Wave, AThousandStepsInOneKernel) {
  Kernel k = kernel("steps", [](X here, X before) {
    FOR (t, 0, steps / 2) {
      FOR (i, 1, here.size() - 1) {
        before(i) =
            wave<Expr<double>>(before(i), here(i - 1), here(i), here(i + 1));
      }
      FOR (i, 1, here.size() - 1) {
        here(i) = wave<Expr<double>>(here(i), before(i - 1), before(i),
                                     before(i + 1));
      }
    }
  });
  auto here = active(start), before = active(start);
  here.grad().from_host(weights);
  k.grad(initial_state, here, before);
  expectNearByLargest(sum(here.grad().to_host(), before.grad().to_host()),
                      timeIndexed(), 1e-12);
}

TEST_F(Wave, AThousandStepsInEveryWorkItem) {
  Kernel k = kernel(
      "strings", [](ArrayRef<double, 2> here, ArrayRef<double, 2> before) {
        parallel(here.size(0), [&](Index s) {
          FOR (t, 0, steps / 2) {
            FOR (i, 1, here.size(1) - 1) {
              before(s, i) = wave<Expr<double>>(before(s, i), here(s, i - 1),
                                                here(s, i), here(s, i + 1));
            }
            FOR (i, 1, here.size(1) - 1) {
              here(s, i) = wave<Expr<double>>(here(s, i), before(s, i - 1),
                                              before(s, i), before(s, i + 1));
            }
          }
        });
      });
  constexpr int strings = 3;
  Values all, seeds, want;
  Values one = timeIndexed();
  for (int s = 0; s < strings; ++s) {
    all.insert(all.end(), start.begin(), start.end());
    seeds.insert(seeds.end(), weights.begin(), weights.end());
    want.insert(want.end(), one.begin(), one.end());
  }
  auto here = active(all, {strings, points}),
       before = active(all, {strings, points});
  here.grad().from_host(seeds);
  k.grad(initial_state, here, before);
  expectNearByLargest(sum(here.grad().to_host(), before.grad().to_host()), want,
                      1e-12);
}

TEST_F(Wave, AThousandLaunchesOnTwoArrays) {
  Kernel step = kernel("step", [](X before, X here) {
    parallel(here.size() - 2, [&](Index j) {
      Index i = j + 1;
      before(i) =
          wave<Expr<double>>(before(i), here(i - 1), here(i), here(i + 1));
    });
  });
  auto here = active(start), before = active(start);
  Tape tape;
  {
    auto recording = tape.record();
    for (int t = 0; t < steps / 2; ++t) {
      step(before, here);
      step(here, before);
    }
  }
  here.grad().from_host(weights);
  before.grad().fill(0);
  tape.backward();
  expectNearByLargest(sum(here.grad().to_host(), before.grad().to_host()),
                      timeIndexed(), 1e-12);
}

} // namespace
