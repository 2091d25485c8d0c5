/// Minima and maxima of elements that nobody else touches: what they return,
/// and what the same work item does with the element besides, has derivatives.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <limits>

COSTATE_LABEL("*", waits);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using Values = std::vector<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// From the initial state, against forward mode and differences; `y` starts
/// with 0.
void expectOwn(const Kernel &k, const Values &start, size_t outputs) {
  auto x = active<double>(start), y = active<double>(Values(outputs, 0.0));
  Values weights = randomValues(outputs, 0.5, 1.5);
  auto loss = [&](const Values &at) {
    x.from_host(at);
    y.fill(0);
    k(x, y);
    return GradientCase::dot(weights, y.to_host());
  };
  auto reset = [&] {
    x.from_host(start);
    y.fill(0);
  };
  reset();
  x.grad().fill(0);
  y.grad().from_host(weights);
  k.grad(initial_state, x, y);
  Values gradient = x.grad().to_host();
  reset();
  {
    Tape tape;
    {
      auto recording = tape.record();
      k(x, y);
    }
    x.grad().fill(0);
    y.grad().from_host(weights);
    tape.backward();
  }
  // GPUs add what several work items add to an element in any order.
  double tolerance = cpu().name() == "cpu" ? 0 : 1e-14;
  Values recorded = x.grad().to_host();
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_NEAR(recorded[i], gradient[i], tolerance) << "entry " << i;
  for (size_t i = 0; i < start.size(); ++i) {
    Values above = start, below = start, direction(start.size(), 0.0);
    above[i] += 1e-5;
    below[i] -= 1e-5;
    direction[i] = 1;
    double difference = (loss(above) - loss(below)) / 2e-5;
    EXPECT_NEAR(gradient[i], difference, 1e-8) << "entry " << i;
    reset();
    x.dual().from_host(direction);
    y.dual().fill(0);
    k.jvp(x, y);
    double forward = GradientCase::dot(weights, y.dual().to_host());
    EXPECT_NEAR(gradient[i], forward, 1e-13) << "entry " << i;
  }
}

const Values some = {0.31, -1.1, 0.7, 0.45, -0.2};

TEST(OwnExtremum, WhatItReturnsInSerialCode) {
  Kernel k = kernel("serial", [](X x, X y) {
    y(1) = 0.5;
    FOR (i, 0, x.size()) {
      Expr<double> before = atomic_min(y(1), x(i) * x(i));
      y(0) += before * x(i);
      y(2) += sin(atomic_max(y(3), x(i)));
    }
  });
  expectOwn(k, some, 4);
}

TEST(OwnExtremum, StartsWithAStore) {
  Kernel k = kernel("start", [](X x, X y) {
    parallel(y.size(), [&](Index p) {
      y(p) = inf;
      FOR (i, 0, x.size()) {
        atomic_min(y(p), (x(i) - cast<double>(p)) * x(i));
      }
    });
  });
  expectOwn(k, some, 3);
}

TEST(OwnExtremum, IsRead) {
  Kernel k = kernel("read", [](X x, X y) {
    parallel(y.size(), [&](Index p) {
      FOR (i, 0, x.size()) {
        atomic_max(y(p), x(i) + 0.1 * x((i + p) % x.size()));
        atomic_min(y(p), 0.9 - y(p) * x(i));
      }
      y(p) = y(p) * y(p);
    });
  });
  expectOwn(k, some, 3);
}

TEST(OwnExtremum, HasTheBitsOfOthers) {
  auto make = [](bool reads) {
    return kernel("bits", [=](X x, X y) {
      parallel(x.size(), [&](Index i) {
        FOR (j, 0, x.size()) {
          atomic_min(y(i), select(j < i, x(j), x(i)));
        }
        if (reads) {
          IF (y(i) > 1e300) {
            y(i) = y(i) * 1.0;
          }
        }
      });
    });
  };
  Values values = {0.0, -0.0, nan, 3, -0.0, 0.0, -inf};
  for (double start : {inf, nan, 0.0, -0.0, -1.0}) {
    auto x = active(values), y = active(Values(7, start)),
         z = active(Values(7, start));
    make(false).jvp(x, y);
    make(true).jvp(x, z);
    for (size_t i = 0; i < values.size(); ++i) {
      double a = y.to_host()[i], b = z.to_host()[i];
      EXPECT_TRUE(std::isnan(a) ? std::isnan(b)
                                : a == b && std::signbit(a) == std::signbit(b))
          << a << " and " << b << " from " << start << ", element " << i;
    }
  }
}

/// Where others may interfere it is refused as before.
TEST(OwnExtremum, OfOthersIsRefused) {
  Kernel k = kernel("shared", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      y(0) = 1.0;
      atomic_max(y(0), x(i));
    });
  });
  auto x = active(some), y = active<double>({0});
  expectError(ErrorCode::CannotReplay, {"OwnExtremumTest.cpp:"},
              [&] { k.grad(initial_state, x, y); });
}

} // namespace
