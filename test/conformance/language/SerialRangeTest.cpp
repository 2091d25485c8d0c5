/// Ranges that serial code drives: in loops and branches of the kernel.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

COSTATE_LABEL("*", waits);
COSTATE_LABEL("*.ALoopDrivesTimeSteps", sample);

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;
using X = ArrayRef<double, 1>;
using X2 = ArrayRef<double, 2>;
using Count = ArrayRef<int, 1>;

/// Slices of a time-indexed array: the first is given, the rest computed.
Array<double> overTime(int64_t steps, int64_t width) {
  Values values(static_cast<size_t>((steps + 1) * width), 0.0);
  Values first = randomValues(static_cast<size_t>(width), 0.5, 1.5);
  std::copy(first.begin(), first.end(), values.begin());
  return active<double>(values, {steps + 1, width});
}

Kernel heat(const char *name) {
  return kernel(name, [](X2 u, X c, Scalar<int> steps) {
    FOR (t, 0, steps) {
      parallel(u.size(1), [&](Index i) {
        Var<double> flow = 0.0;
        IF (i > 0) {
          flow += u(t, i - 1) - u(t, i);
        }
        IF (i + 1 < u.size(1)) {
          flow += u(t, i + 1) - u(t, i);
        }
        u(t + 1, i) = u(t, i) + c(i) * sin(flow);
      });
    }
  });
}

// RULE: ranges
TEST(SerialRanges, ALoopDrivesTimeSteps) {
  Array<double> u = overTime(6, 5),
                c = active<double>({0.1, 0.2, 0.3, 0.2, 0.1});
  expectGradients({u, c}, {u}, heat("heat"), u, c, 6);
  expectGradients({u, c}, {u}, heat("heat"), u, c, 0);
}

/// Conjugate gradients: slice 0 is read before slices from 1 on are written.
TEST(SerialRanges, ConjugateGradients) {
  Kernel k = kernel("solve", [](X b, X y, X2 p, X2 r, X2 u) {
    Index n = b.size();
    parallel(n, [&](Index i) {
      r(0, i) = b(i);
      p(0, i) = b(i);
    });
    auto norm = [&](Index t) {
      return sum(n, [&](Index i) { return r(t, i) * r(t, i); });
    };
    auto times = [&](Index t, Index i) {
      return (3.0 + b(i)) * p(t, i) - p(t, (i + 1) % n) - p(t, (i + n - 1) % n);
    };
    Var<double> rest = norm(0);
    Var<int64_t> iteration = 0;
    WHILE ((rest > 1e-3) & (iteration < 6)) {
      Index t = iteration;
      Expr<double> a =
          rest / sum(n, [&](Index i) { return p(t, i) * times(t, i); });
      parallel(n, [&](Index i) {
        u(t + 1, i) = u(t, i) + a * p(t, i);
        r(t + 1, i) = r(t, i) - a * times(t, i);
      });
      Expr<double> next = norm(t + 1);
      parallel(n, [&](Index i) {
        p(t + 1, i) = r(t + 1, i) + next / rest * p(t, i);
      });
      rest = next;
      iteration += 1;
    }
    parallel(n, [&](Index i) { y(i) = u(iteration, i) * (1.0 + rest); });
  });
  auto slices = [] { return active<double>(Values(21, 0.0), {7, 3}); };
  Array<double> b = active<double>({0.3, 1, 0.7}), y = active(Values(3, 0.0));
  expectGradients({b}, {y}, k, b, y, slices(), slices(), slices());
}

TEST(SerialRanges, NobodyWaitsForBoundsThatTheHostKnows) {
  Array<double> u = overTime(6, 5),
                c = active<double>({0.1, 0.2, 0.3, 0.2, 0.1});
  Kernel k = heat("heat");
  for (int launch = 0; launch < 3; ++launch) {
    cpu().reset_statistics();
    k(u, c, 6);
    k.grad(u, c, 6);
  }
  Statistics seen = cpu().statistics();
  EXPECT_EQ(seen.synchronizations, 0u);
  EXPECT_EQ(seen.downloads, 0u);
}

TEST(SerialRanges, BoundsAndExtentsAreReadFromTheDevice) {
  Kernel k =
      kernel("ragged_steps", [](X2 u, Count steps, Count widths, X loss) {
        FOR (t, 0, steps(0)) {
          parallel(widths(t), [&](Index i) {
            Var<double> v = u(t, i);
            FOR (j, 0, i + 1) {
              v = v * cos(v);
            }
            u(t + 1, i) = v + 0.5 * u(t, i);
            loss(t) += v * v;
          });
        }
      });
  Array<double> u = overTime(4, 5), loss = active<double>(Values(4, 0.0));
  Array<int> steps = constant<int>({4}), widths = constant<int>({5, 3, 0, 4});
  expectGradients({u}, {u, loss}, k, u, steps, widths, loss);
}

/// On a GPU, a launch that only measures tapes leaves the reverse sweep out,
/// whose bounds are then whatever an earlier kernel has left.
TEST(SerialRanges, CountsOfTheReverseSweepAreNotMeasured) {
  Kernel before = kernel("before", [](X x, X y) {
    std::vector<Expr<double>> values = {x(0) * 1e300};
    for (int k = 0; k < 12; ++k)
      values.push_back(values.back() * 0.9);
    parallel(x.size(), [&](Index i) {
      for (const Expr<double> &value : values)
        y(i) += value;
    });
  });
  Kernel k = kernel("counts", [](X x, Count counts, X loss) {
    Var<int> count = 1;
    FOR (t, 0, counts.size(0)) {
      count = (3 * count + counts(t)) % 4;
      FOR (s, 0, count) {
        parallel(x.size(), [&](Index i) {
          Var<double> v = x(i);
          FOR (j, 0, i + 1) {
            v = v * cos(v);
          }
          loss(0) += v;
        });
      }
      parallel({Index(count), x.size()},
               [&](Index i, Index j) { loss(0) += sin(x(j)) * x(i); });
    }
  });
  Array<double> x = active<double>({0.3, 0.7, 1.1, 0.4}),
                loss = active<double>({0});
  Array<int> counts = constant<int>({2, 0, 3});
  Array<double> y = constant(Values(4, 0.0));
  before(x, y);
  k.grad(x, counts, loss);
  expectGradients({x}, {loss}, k, x, counts, loss);
}

/// The condition reads what the ranges have added up.
TEST(SerialRanges, AWhileLoopStopsByAResult) {
  Kernel k = kernel("newton", [](X2 u, X a, X residual, X iterations, X loss) {
    Var<int> t = 0;
    WHILE (t < 20) {
      parallel(a.size(), [&](Index i) {
        Expr<double> r = u(t, i) * u(t, i) - a(i);
        u(t + 1, i) = u(t, i) - 0.5 * r / u(t, i);
        residual(t) += r * r;
      });
      t += 1;
      IF (residual(t - 1) < 1e-3) {
        BREAK;
      }
    }
    iterations(0) = cast<double>(t);
    parallel(a.size(), [&](Index i) { loss(0) += u(t, i) * a(i); });
  });
  Array<double> u = overTime(20, 3), a = active<double>({2, 3, 1.7}),
                residual = active<double>(Values(20, 0.0)),
                iterations = scalarResult(), loss = scalarResult();
  k(u, a, residual, iterations, loss);
  double count = iterations.to_host()[0];
  EXPECT_GT(count, 1);
  EXPECT_LT(count, 10);
  expectGradients({u, a}, {residual, loss}, k, u, a, residual, iterations,
                  loss);
}

TEST(SerialRanges, BranchesDriveRanges) {
  Kernel k = kernel("either", [](X x, X y, Scalar<int> which, X scale) {
    Var<double> s = scale(0);
    IF (which > 0) {
      s = s * scale(1);
      parallel(x.size(), [&](Index i) { y(i) = s * sin(x(i)); });
    }
    ELSE {
      parallel(x.size(), [&](Index i) { y(i) = s * x(i) * x(i); });
    }
    parallel(x.size(), [&](Index i) { y(i + x.size()) = s * exp(x(i)); });
  });
  Array<double> x = active<double>({0.3, -0.7, 1.1}),
                y = active<double>(Values(6, 0.0)),
                scale = active<double>({1.3, 0.6});
  for (int which : {0, 1})
    expectGradients({x, scale}, {y}, k, x, y, which, scale);
}

/// Serial values that change from one iteration to the next flow into ranges,
/// and sums of ranges into serial code.
// RULE: ranges
TEST(SerialRanges, SerialValuesAreCarried) {
  Kernel k =
      kernel("carried", [](X2 u, X rate, X sums, Scalar<int> steps, X last) {
        Var<double> dt = rate(0);
        FOR (t, 0, steps) {
          parallel(u.size(1), [&](Index i) {
            u(t + 1, i) = u(t, i) + dt * sin(u(t, i));
            sums(t) += u(t, i) * dt;
          });
          dt = dt * cos(sums(t)) + rate(1);
        }
        last(0) = dt;
      });
  Array<double> u = overTime(5, 4), rate = active<double>({0.3, 0.2}),
                sums = active<double>(Values(5, 0.0)), last = scalarResult();
  expectGradients({u, rate}, {u, sums, last}, k, u, rate, sums, 5, last);
}

TEST(SerialRanges, LoopsNest) {
  Kernel k = kernel("nested", [](ArrayRef<double, 3> u, X w, Count inner) {
    FOR (a, 0, u.size(0) - 1) {
      FOR (b, 0, inner(a)) {
        parallel(u.size(2), [&](Index i) {
          u(a, b + 1, i) = u(a, b, i) * cos(u(a, b, i)) + w(i);
        });
      }
      Index last = cast<int64_t>(inner(a));
      parallel(u.size(2),
               [&](Index i) { u(a + 1, 0, i) = u(a, last, i) * w(i); });
    }
  });
  Values start(4 * 4 * 3, 0.0);
  start[0] = 0.7, start[1] = 0.2, start[2] = -0.4;
  Array<double> u = active<double>(start, {4, 4, 3}),
                w = active<double>({1.5, 0.8, 1.2});
  Array<int> inner = constant<int>({3, 0, 2});
  expectGradients({u, w}, {u}, k, u, w, inner);
}

TEST(SerialRanges, ExtremaOfAnIteration) {
  Kernel k = kernel("largest", [](X2 u, X most, Scalar<int> steps) {
    FOR (t, 0, steps) {
      parallel(u.size(1), [&](Index i) { atomic_max(most(t), u(t, i)); });
      parallel(u.size(1), [&](Index i) {
        u(t + 1, i) = u(t, i) / most(t) + 0.1 * sin(3.0 * u(t, i));
      });
    }
  });
  Array<double> u = overTime(4, 5), most = active<double>(Values(4, -1e9));
  Values start = u.to_host();
  std::copy_n(Values{0.4, 0.9, 0.6, 1.4, 0.2}.begin(), 5, start.begin());
  u.from_host(start);
  GradientCase c({u}, {u, most});
  Values gradient = reverseGradient(c, k, u, most, 4)[0];
  for (size_t entry = 0; entry < gradient.size(); ++entry)
    EXPECT_NEAR(gradient[entry], differenceEntry(c, 0, entry, k, u, most, 4),
                1e-8)
        << "entry " << entry;
}

TEST(SerialRanges, PrivateArraysAndEarlyEnds) {
  Kernel k = kernel("private", [](X2 u, X w, Scalar<int> steps) {
    FOR (t, 0, steps) {
      IF (t == 3) {
        RETURN;
      }
      parallel(u.size(1), [&](Index i) {
        Local<double, 4> history;
        FOR (j, 0, 6) {
          history(j % 4) = history((j + 3) % 4) * w(i) + u(t, i);
        }
        IF (i == 1) {
          u(t + 1, i) = 0.25 * history(1);
          RETURN;
        }
        u(t + 1, i) = 0.2 * history(1) * history(0);
      });
    }
  });
  Array<double> u = overTime(5, 3), w = active<double>({0.4, 0.3, -0.5});
  expectGradients({u, w}, {u}, k, u, w, 5);
}

/// Kernels whose tapes are measured on GPUs: by counts that only serial code of
/// the iteration knows.
TEST(SerialRanges, CountsOfAnIterationReachTheWorkItems) {
  for (KernelOptions options : {KernelOptions{}, KernelOptions{.debug = true},
                                KernelOptions{.deterministic = true}}) {
    Kernel k = kernel(
        "counts",
        [](X2 u, X w, Count counts, X sums) {
          Var<double> scale = w(0);
          FOR (t, 0, counts.size()) {
            Expr<int> iterations = counts(t);
            Expr<double> own = scale;
            IF (iterations > 0) {
              parallel(u.size(1), [&](Index i) {
                Local<double, 2> last;
                last(0) = u(t, i);
                FOR (j, 0, iterations + cast<int>(i)) {
                  last((j + 1) % 2) = sin(last(j % 2)) * own;
                }
                u(t + 1, i) = last(0) + w(1) * last(1);
                sums(0) += last(1);
              });
            }
            ELSE {
              parallel(u.size(1),
                       [&](Index i) { u(t + 1, i) = own * u(t, i); });
            }
            scale = scale * cos(scale);
          }
        },
        options);
    Array<double> u = overTime(4, 3), w = active<double>({1.3, 0.6}),
                  sums = scalarResult();
    Array<int> counts = constant<int>({3, 0, 6, 1});
    expectGradients({u, w}, {u, sums}, k, u, w, counts, sums);
  }
}

TEST(SerialRanges, SecondDerivatives) {
  Kernel k = kernel("loss", [](X2 u, X c, Scalar<int> steps, X loss) {
    Var<double> dt = c(0);
    FOR (t, 0, steps) {
      parallel(u.size(1), [&](Index i) {
        Var<double> v = u(t, i);
        FOR (j, 0, i) {
          v = v + dt * sin(v);
        }
        u(t + 1, i) = v;
      });
      dt = dt * c(1);
    }
    parallel(u.size(1), [&](Index i) { loss(0) += exp(u(steps, i)); });
  });
  Array<double> u = overTime(4, 3), c = active<double>({0.3, 0.9}),
                loss = active<double>({0});
  Values at = c.to_host(), direction{1, -0.5};
  auto gradient = [&](double h) {
    c.from_host({at[0] + h * direction[0], at[1] + h * direction[1]});
    k(u, c, 4, loss);
    u.grad().fill(0), c.grad().fill(0), loss.grad().fill(1);
    k.grad(u, c, 4, loss);
    return c.grad().to_host();
  };
  Values above = gradient(1e-5), below = gradient(-1e-5);
  c.from_host(at);
  k(u, c, 4, loss);
  u.grad().fill(0), c.grad().fill(0), loss.grad().fill(1);
  u.dual().fill(0), loss.dual().fill(0);
  c.dual().from_host(direction);
  k.jvp(u, c, 4, loss);
  c.grad().dual().fill(0), u.grad().dual().fill(0), loss.grad().dual().fill(0);
  k.gradient().jvp(u, c, 4, loss);
  Values product = c.grad().dual().to_host();
  for (int k : {0, 1})
    EXPECT_NEAR(product[k], (above[k] - below[k]) / 2e-5, 1e-6);
}

/// What is overwritten after the loop is taken from before the launch.
TEST(SerialRanges, ARecordingKeepsWhatALaterPartOverwrites) {
  Kernel k = kernel("overwritten", [](X x, X2 u, Scalar<int> steps) {
    parallel(x.size(), [&](Index i) { u(0, i) = x(i) * x(i); });
    FOR (t, 0, steps) {
      parallel(x.size(), [&](Index i) { u(t + 1, i) = u(t, i) * x(i); });
    }
    parallel(x.size(), [&](Index i) { x(i) = sin(x(i)) * u(steps, i); });
    parallel(x.size(), [&](Index i) { x(i) = x(i) * x(i); });
  });
  Array<double> x = active<double>({0.5, 1.5, -0.8}),
                u = active<double>(Values(15, 0.0), {5, 3});
  for (bool recorded : {false, true}) {
    x.from_host({0.5, 1.5, -0.8});
    u.fill(0), u.grad().fill(0), x.grad().fill(1);
    if (recorded) {
      Tape tape;
      {
        auto recording = tape.record();
        k(x, u, 4);
      }
      x.grad().fill(1);
      tape.backward();
    } else {
      k.grad(initial_state, x, u, 4);
    }
    Values got = x.grad().to_host();
    Values start{0.5, 1.5, -0.8};
    for (size_t i = 0; i < 3; ++i) {
      double v = start[i], f = std::sin(v) * std::pow(v, 6);
      double slope =
          2 * f *
          (std::cos(v) * std::pow(v, 6) + 6 * std::sin(v) * std::pow(v, 5));
      EXPECT_NEAR(got[i], slope, 1e-12 * std::max(1.0, std::abs(slope)))
          << recorded;
    }
  }
}

// RULE: ranges
TEST(SerialRanges, OverwritingInALaterIterationIsRefused) {
  Kernel k = kernel("in_place", [](X u, X v, Scalar<int> steps) {
    FOR (t, 0, steps) {
      parallel(u.size(), [&](Index i) { v(i) = u(i) * u(i); });
      parallel(u.size(), [&](Index i) { u(i) = sin(v(i)); });
    }
  });
  Array<double> u = active<double>({1, 2}), v = active<double>({0, 0});
  int loop = __LINE__ - 6, read = loop + 1;
  k(u, v, 3);
  u.grad().fill(1), v.grad().fill(0);
  expectError(ErrorCode::CannotReplay,
              {here(__FILE__, read), here(__FILE__, loop),
               "it is overwritten before the kernel ends",
               "give the array a time index"},
              [&] { k.grad(u, v, 3); });
  expectError(ErrorCode::CannotReplay,
              {"it is overwritten before the kernel ends"},
              [&] { k.grad(initial_state, u, v, 3); });
  k(u, v, 3);
  EXPECT_TRUE(std::isfinite(u.to_host()[0]));
}

/// Values that nothing needs may be overwritten.
TEST(SerialRanges, LinearStepsMayOverwrite) {
  Kernel k = kernel("linear", [](X u, X v, Scalar<int> steps, X scale) {
    FOR (t, 0, steps) {
      parallel(u.size(), [&](Index i) { v(i) = 0.5 * u(i) * scale(t); });
      parallel(u.size(), [&](Index i) { u(i) = v(u.size() - 1 - i) + v(i); });
    }
  });
  Array<double> u = active<double>({1, 2, 4}), v = active<double>({0, 0, 0});
  Array<double> scale = constant<double>({1.5, -0.5, 2});
  k(u, v, 3, scale);
  u.grad().from_host({1, 10, 100}), v.grad().fill(0);
  k.grad(u, v, 3, scale);
  // A step maps u to scale/2 (u + reverse u), three of them to scale (u +
  // reverse u)/2 with the product of the scales.
  double s = 1.5 * -0.5 * 2;
  EXPECT_EQ(u.grad().to_host(), (Values{s * 101 / 2, s * 10, s * 101 / 2}));
}

} // namespace
