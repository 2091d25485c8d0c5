/// Work items as lanes of vectors: the same bits for every number of lanes, and
/// the derivatives of one work item after the other.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

using namespace costate;
using namespace costate::test;

namespace {

constexpr int counts[] = {1, 2, 4, 8, 16, 32, 64};

/// More than two vectors of 16 lanes, and a rest.
constexpr size_t size = 45;

std::vector<double> some(double from, double step) {
  std::vector<double> values(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = from + step * static_cast<double>(i * 7 % size);
  return values;
}

std::vector<int> depths() {
  std::vector<int> values(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = static_cast<int>(i * i % 11);
  return values;
}

/// Compares y and the gradient by x of `k(x, n, y)` for all numbers of lanes,
/// bit by bit, and with differences. What several work items add to, and
/// gradients of what they read, are sums whose order is left to chance.
template <class F>
void expectSame(const F &body, double tolerance = 0, double sumTolerance = 0) {
  std::vector<double> values, gradient;
  for (int lanes : counts) {
    Kernel k = kernel("lanes", body, KernelOptions{.lanes = lanes});
    auto x = active(some(0.2, 0.03)), y = active(std::vector<double>(size, 0));
    auto n = constant(depths());
    k(x, n, y);
    std::vector<double> result = y.to_host();
    y.grad().fill(1);
    k.grad(x, n, y);
    std::vector<double> slope = x.grad().to_host();
    if (values.empty()) {
      values = result;
      gradient = slope;
    }
    for (size_t i = 0; i < size; ++i) {
      EXPECT_NEAR(result[i], values[i], sumTolerance) << lanes << " lanes";
      EXPECT_NEAR(slope[i], gradient[i], tolerance) << lanes << " lanes";
    }
    expectGradients({x}, {y}, k, x, n, y);
  }
}

using X = ArrayRef<double, 1>;
using N = ArrayRef<int, 1>;

TEST(Lanes, HaveLoopsOfDifferentLength) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        v = v * sin(v) + 0.1 * v * cast<double>(j);
      }
      y(i) = v;
    });
  });
}

/// Values, and the gradient by x, of `body(x, n, y)` with so many lanes.
template <class F>
std::pair<std::vector<double>, std::vector<double>>
ofManyWorkItems(const F &body, const std::vector<int> &lengths, int lanes,
                std::string *report = nullptr) {
  std::vector<double> start(lengths.size());
  for (size_t i = 0; i < start.size(); ++i)
    start[i] = 0.2 + 0.001 * static_cast<double>(i % 700);
  Kernel k = kernel("lengths", body, KernelOptions{.lanes = lanes});
  auto x = active(start), y = active(std::vector<double>(start.size(), 0));
  auto n = constant(lengths);
  k(x, n, y);
  std::vector<double> values = y.to_host();
  y.grad().fill(1);
  k.grad(x, n, y);
  if (report)
    *report = k.report();
  return {values, x.grad().to_host()};
}

/// Few are long, as in an exponential distribution.
std::vector<int> raggedLengths(size_t workItems) {
  std::vector<int> lengths(workItems);
  for (size_t i = 0; i < workItems; ++i)
    lengths[i] = static_cast<int>(i * 7919 % 97 == 0 ? 300 : i * 31 % 9);
  return lengths;
}

auto iterated() {
  return [](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        v = v * sin(v) + 0.1 * cast<double>(j % 3);
      }
      y(i) = v;
    });
  };
}

TEST(Lanes, ComeInTheOrderOfTheirLengths) {
  for (size_t workItems : {40, 1000, 1024, 5003}) {
    std::vector<int> lengths = raggedLengths(workItems);
    auto alone = ofManyWorkItems(iterated(), lengths, 1);
    for (int lanes : {0, 4, 8, 32}) {
      std::string report;
      auto both = ofManyWorkItems(iterated(), lengths, lanes, &report);
      EXPECT_EQ(both.first, alone.first) << lanes << " lanes";
      EXPECT_EQ(both.second, alone.second) << lanes << " lanes";
      bool isSaid =
          report.find("in the order of their lengths") != std::string::npos;
      EXPECT_EQ(isSaid, isOnCpu()) << report;
    }
  }
}

/// What memory holds before is no index: it is beyond all arrays here.
TEST(Lanes, OfLengthsThatAreWrittenFirstComeAsTheyAre) {
  auto body = [](X x, N n, X y, ArrayRef<int, 1> at) {
    parallel(x.size(0), [&](Index i) {
      at(i) = cast<int>(i / 2);
      Var<double> v = x(i);
      FOR (j, 0, n(at(i))) {
        v = v * sin(v) + 0.1;
      }
      Var<int> count = 0;
      IF (i % 3 > 0) {
        count = n(at(i));
      }
      FOR (j, 0, count) {
        v = v * cos(v) + 0.1;
      }
      y(i) = v;
    });
  };
  std::vector<int> lengths = raggedLengths(3000);
  std::vector<double> start(lengths.size(), 0.7), first;
  for (int lanes : {1, 0, 8}) {
    Kernel k = kernel("written", body, KernelOptions{.lanes = lanes});
    auto x = active(start), y = active(std::vector<double>(start.size(), 0));
    auto n = constant(lengths);
    auto at = constant(std::vector<int>(lengths.size(), 1 << 30));
    k(x, n, y, at);
    first = first.empty() ? y.to_host() : first;
    EXPECT_EQ(y.to_host(), first) << lanes << " lanes";
  }
}

TEST(Lanes, TakeBothSidesOfABranchThatSave) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, 5) {
        IF ((n(i) + j) % 3 == 0) {
          v = sin(v) * v;
        }
        ELSE { v = exp(-v) - 0.3 * v * v; }
      }
      y(i) = v;
    });
  });
}

/// Both sides save, one once and the other one as often as its loop runs.
TEST(Lanes, GoBackThroughTheSecondSideFirst) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, 3) {
        IF (n(i) + j > 5) {
          FOR (k, 0, n(i)) {
            v = sin(v) * v + 0.3;
          }
        }
        ELSE {
          FOR (k, 0, 2) {
            v = exp(-v) * v + 0.5;
          }
        }
      }
      y(i) = v;
    });
  });
}

/// On one way, there or back, nothing stands between the branches.
TEST(Lanes, TakeABranchTwice) {
  auto branchAndLoop = [](const auto &condition, Var<double> &v,
                          const auto &count) {
    IF (condition) {
      FOR (k, 0, count) {
        v = sin(v) * v + 0.3;
      }
    }
    ELSE {
      FOR (k, 0, count) {
        v = exp(-v) * v + 0.5;
      }
    }
  };
  expectSame([&](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      auto isLong = n(i) > 5;
      branchAndLoop(isLong, v, n(i));
      branchAndLoop(isLong, v, n((i * 3) % x.size(0)));
      y(i) = v;
    });
  });
  expectSame([&](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      auto isLong = n(i) > 5;
      branchAndLoop(isLong, v, 3);
      y(i) = v;
      branchAndLoop(isLong, v, 2);
      y(i) += v;
    });
  });
}

TEST(Lanes, LeaveNestedLoopsAtDifferentTimes) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        FOR (k, 0, n(i) - j) {
          v = sin(v) + 0.2 * v * v;
          IF (cast<int>(k) == n(i) % 4 + 1) {
            BREAK;
          }
        }
        IF ((n(i) + j) % 4 == 1) {
          CONTINUE;
        }
        v = 0.7 * v * v + 0.1;
      }
      y(i) = v;
    });
  });
}

/// On the way back, all lanes multiply the same adjoint by the same factors,
/// but begin at different times.
TEST(Lanes, BeginLateWithWhatAllShare) {
  expectSame([](X x, N n, X y) {
    y(0) = sum(x.size(0), [&](Index i) {
      Var<double> v = x(i), factor = 0.5;
      FOR (j, 0, n(i)) {
        factor = sin(factor) + 0.3;
        v *= factor;
      }
      return Expr<double>(v);
    });
  });
}

TEST(Lanes, EndWhileLoopsAndReturnEarly) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      IF (n(i) == 3) {
        RETURN;
      }
      Var<double> v = x(i);
      WHILE (abs(v * v - x(i)) > 1e-12) {
        v = 0.5 * (v + x(i) / v);
      }
      y(i) = v;
    });
  });
}

TEST(Lanes, HavePrivateArrays) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Local<double, 4> last;
      FOR (j, 0, n(i) + 1) {
        last((i + j) % 4) = sin(x(i) + cast<double>(j)) + last(j % 4) * 0.5;
      }
      y(i) = last(0) * last(1) + last(2) + last(3);
    });
  });
}

TEST(Lanes, HavePrivateArraysOfBoolsAndNarrowIntegers) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Local<bool, 5> seen;
      Local<int8_t, 3> counts;
      Var<double> v = x(i);
      FOR (j, 0, n(i)) {
        Var<int> place = (n(i) * cast<int>(j)) % 5;
        IF (seen(place)) {
          v = sin(v);
        }
        ELSE { v = 0.5 * cos(v) * v + 0.1; }
        seen(place) = place % 2 == n(i) % 2;
        counts(place % 3) += cast<int8_t>(50 + place);
      }
      y(i) = v * 0.01 * cast<double>(counts(0) - counts(1));
    });
  });
}

TEST(Lanes, CountBySteps) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 1, n(i), 3) {
        v = v * sin(v) + 0.1 * v * cast<double>(j);
      }
      y(i) = v;
    });
  });
}

/// Every other element, as far as there are some.
TEST(Lanes, ReadByStrides) {
  expectSame([](X x, N n, X y) {
    parallel(x.size(0), [&](Index i) {
      Var<double> v = 0.5;
      IF (i * 2 < x.size(0)) {
        FOR (j, 0, n(i)) {
          v = cos(v) * x(i * 2);
        }
      }
      y(i) = v;
    });
  });
}

/// Lanes that do not take a branch have a value as well, but do not add it.
TEST(Lanes, AddToOneElementWhereTheyTakeABranch) {
  expectSame(
      [](X x, N n, X y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> v = x(i);
          IF (n(i) > 4) {
            FOR (j, 0, 3) {
              v = sin(v) + 1.0;
              atomic_add(y(j), v);
            }
          }
        });
      },
      1e-13, 1e-13);
}

/// Where all adjoints are 0 nothing is added, not even to -0.
TEST(Lanes, AddNothingWhereOthersAdd) {
  using Columns = ArrayRef<double, 2>;
  auto body = [](Columns x, X p, X y) {
    parallel(y.size(0), [&](Index i) {
      Var<double> v = 0.0;
      FOR (j, 0, x.size(0)) {
        v += x(j, i) * p(j);
      }
      y(i) = v;
    });
  };
  std::vector<double> seeds(size);
  for (size_t i = 0; i < size; ++i)
    seeds[i] = i % 3 ? 0 : 1;
  for (int lanes : counts) {
    Kernel k = kernel("skips", body, KernelOptions{.lanes = lanes});
    Array<double> x = cpu().array<double>({2, size}, grad);
    x.fill(3);
    x.grad().fill(-0.0);
    auto p = active({0.5, 0.25}), y = active(std::vector<double>(size, 0));
    y.grad().from_host(seeds);
    k.grad(x, p, y);
    std::vector<double> slopes = x.grad().to_host();
    for (size_t i = 0; i < 2 * size; ++i) {
      double expected = seeds[i % size] ? (i < size ? 0.5 : 0.25) : -0.0;
      EXPECT_EQ(slopes[i], expected) << lanes << " lanes";
      if (isOnCpu()) {
        EXPECT_EQ(std::signbit(slopes[i]), std::signbit(expected));
      }
    }
    EXPECT_EQ(p.grad().to_host(), std::vector<double>(2, size));
  }
}

TEST(Lanes, ReadWhatNeighboursAndOthersHave) {
  expectSame(
      [](X x, N n, X y) {
        parallel(x.size(0), [&](Index i) {
          Var<double> sum = 0.0;
          FOR (j, 0, n(i)) {
            sum += x((i * 3 + j) % x.size(0)) * x(min(i + 1, x.size(0) - 1)) *
                   x(j);
          }
          y(i) = sum;
        });
      },
      1e-13);
}

/// Sums of a range are those of as many partial ones.
TEST(Lanes, DoNotChangeSums) {
  std::vector<double> results, gradient;
  for (int lanes : counts) {
    Kernel k = kernel(
        "sums",
        [](X x, N n, X y) {
          y(0) = sum(x.size(0), [&](Index i) {
            Var<double> v = x(i);
            FOR (j, 0, n(i)) {
              v = v * 1.1 + sin(v);
            }
            return Expr<double>(v + 1.0);
          });
        },
        KernelOptions{.lanes = lanes});
    auto x = active(some(0.2, 0.03)), y = active(std::vector<double>{0});
    auto n = constant(depths());
    k(x, n, y);
    results.push_back(y.to_host()[0]);
    y.grad().fill(1);
    k.grad(x, n, y);
    if (lanes == 1)
      gradient = x.grad().to_host();
    EXPECT_EQ(results.back(), results.front()) << lanes << " lanes";
    EXPECT_EQ(x.grad().to_host(), gradient) << lanes << " lanes";
  }
}

/// Chunks have more than one vector of registers.
TEST(Lanes, DoNotChangeSumsOfManyWorkItems) {
  std::vector<double> many(20000), results;
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = 0.001 * static_cast<double>(i * 7 % 1009);
  for (int lanes : counts) {
    Kernel k = kernel(
        "sums",
        [](X x, X y) {
          y(0) = sum(x.size(0), [&](Index i) {
            Var<double> v = x(i);
            FOR (j, 0, i % 5) {
              v = v * 1.1 + sin(v);
            }
            return Expr<double>(v + 1.0);
          });
        },
        KernelOptions{.lanes = lanes});
    auto x = constant(many), y = constant(std::vector<double>{0});
    k(x, y);
    results.push_back(y.to_host()[0]);
    EXPECT_EQ(results.back(), results.front()) << lanes << " lanes";
  }
}

/// Every work item has a place of its own, also where a condition holds for
/// some lanes only.
TEST(Lanes, MakeAtomicsOneByOne) {
  for (int lanes : counts) {
    Kernel k = kernel(
        "take",
        [](N n, N places, N next) {
          parallel(n.size(0), [&](Index i) {
            IF (n(i) > 4) {
              Var<int> place = atomic_add(next(0), 1);
              places(place) = n(i);
            }
          });
        },
        KernelOptions{.lanes = lanes});
    auto n = constant(depths());
    auto places = constant(std::vector<int>(size, 0));
    auto next = constant(std::vector<int>{0});
    k(n, places, next);
    std::vector<int> found = places.to_host(), expected;
    for (int depth : depths())
      if (depth > 4)
        expected.push_back(depth);
    EXPECT_EQ(static_cast<size_t>(next.to_host()[0]), expected.size());
    expected.resize(size, 0);
    std::ranges::sort(found);
    std::ranges::sort(expected);
    EXPECT_EQ(found, expected) << lanes << " lanes";
  }
}

/// Of a sum of long loops: the bytes that its gradient saves, the sum, and the
/// gradient.
std::tuple<size_t, double, std::vector<double>> loopsOf(size_t workItems,
                                                        int lanes) {
  Kernel k = kernel(
      "loops",
      [](X x, ArrayRef<double, 0> y) {
        y() = sum(x.size(0), [&](Index i) {
          Var<double> v = x(i);
          FOR (j, 0, 20'000) {
            v = v * 0.5 + sin(v);
          }
          return Expr<double>(v);
        });
      },
      KernelOptions{.lanes = lanes});
  std::vector<double> values = some(0.2, 0.03);
  values.resize(workItems);
  auto x = active(values);
  Array<double> y = cpu().array<double>({}, grad);
  k(x, y);
  y.grad().fill(1);
  size_t before = cpu().current_bytes();
  cpu().reset_peak_bytes();
  k.grad(x, y);
  return {cpu().peak_bytes() - before, y.to_host()[0], x.grad().to_host()};
}

TEST(Lanes, OfAShortRowSaveNothing) {
  for (size_t workItems : {1, 2, 3, 17}) {
    auto [least, value, gradient] = loopsOf(workItems, 1);
    auto [bytes, ownValue, ownGradient] = loopsOf(workItems, 0);
    if (workItems == 1) {
      EXPECT_LE(bytes, least + least / 4);
    }
    EXPECT_EQ(ownValue, value) << workItems << " work items";
    EXPECT_EQ(ownGradient, gradient) << workItems << " work items";
  }
}

TEST(Lanes, AreAsManyAsAVectorCanHave) {
  auto make = [](int lanes) {
    return kernel(
        "odd", [](X x) { x(0) = 1.0; }, KernelOptions{.lanes = lanes});
  };
  for (int lanes : {-1, 3, 128})
    expectError(ErrorCode::BadKernel, {"lanes"}, [&] { make(lanes); });
}

} // namespace
