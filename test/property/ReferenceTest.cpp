/// The evaluation of statement trees against what the guide to the language
/// says, where the random kernels do not go.

#include "property/Reference.h"

#include "Labels.h"
#include "costate/costate.h"
#include "costate/syntax.h"
#include "syntax/Trace.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <span>

COSTATE_LABEL("*", host);

using namespace costate;

namespace {

template <class T> interpreter::HostArray host(std::vector<T> values) {
  interpreter::HostArray array{{int64_t(values.size())}, {}};
  auto bytes = std::as_bytes(std::span(values));
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

/// What a kernel over one vector leaves in it; empty if it cannot be judged.
template <class T, class F>
std::vector<T> after(std::vector<T> values, F body) {
  auto tree = detail::trace("k", body, Loc::current());
  EXPECT_FALSE(tree->failure);
  interpreter::HostArray array = host(values);
  if (!property::evaluate(tree->outlined(), {{&array}}))
    return {};
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

using Doubles = std::vector<double>;

TEST(Reference, JumpsLeaveWhatTheyName) {
  auto body = [](ArrayRef<int, 1> x) {
    FOR (i, 0, 4) {
      FOR (j, 0, 3) {
        IF (j == 1) {
          CONTINUE;
        }
        IF (i == 2) {
          BREAK;
        }
        x(i) += 1;
      }
    }
    parallel(4, [&](Index i) {
      IF (i == 3) {
        RETURN;
      }
      x(i) += 10;
    });
    RETURN;
    x(0) = 99;
  };
  EXPECT_EQ(after<int>({0, 0, 0, 0}, body), (std::vector{12, 12, 10, 2}));
}

TEST(Reference, BoundsOfLoops) {
  auto body = [](ArrayRef<int64_t, 1> x) {
    Var<int64_t> sum = 0;
    FOR (i, 5, -2, -3) {
      sum = sum * 10 + i;
    } // 5 2 -1
    x(0) = sum;
    FOR (i, 9223372036854775806, 9223372036854775807, 2) {
      x(1) = i;
    }
    Var<int64_t> left = x(2);
    WHILE (left > 0) {
      x(3) += left;
      left -= 1;
    }
  };
  EXPECT_EQ(after<int64_t>({0, 0, 4, 0}, body),
            (std::vector<int64_t>{519, 9223372036854775806, 4, 10}));
  auto still = [](ArrayRef<int64_t, 1> x) {
    FOR (i, 0, 4, x(0)) {
      x(1) = i;
    }
  };
  EXPECT_TRUE(after<int64_t>({0, 0}, still).empty());
}

TEST(Reference, IntegersAtTheirEdges) {
  constexpr int least = std::numeric_limits<int>::min();
  auto body = [](ArrayRef<int, 1> x) {
    x(1) = x(0) / -1;
    x(2) = x(0) % -1;
    x(3) = x(0) / 0;
    x(4) = x(0) - 1;
    x(5) = Expr<int>(1) << 33;
    x(6) = Expr<int>(-7) % 3;
    x(7) = cast<int>(Expr<double>(-1e10));
    x(8) = cast<int>(Expr<double>(nan));
  };
  EXPECT_EQ(after<int>({least, 0, 0, 0, 0, 0, 0, 0, 0}, body),
            (std::vector{least, least, 0, 0, std::numeric_limits<int>::max(), 2,
                         -1, least, 0}));
}

TEST(Reference, AtomicUpdates) {
  auto body = [](ArrayRef<double, 1> x) {
    atomic_min(x(0), 1.0);
    atomic_min(x(1), Expr<double>(nan));
    atomic_max(x(2), 1.0);
    atomic_min(x(3), -0.0);
    atomic_max(x(4), 0.0);
    x(5) -= 1.0;
  };
  Doubles left = after<double>({2, 2, nan, 0., -0., inf}, body);
  EXPECT_EQ(left, (Doubles{1, 2, 1, 0, 0, inf}));
  EXPECT_TRUE(std::signbit(left[3]));
  EXPECT_FALSE(std::signbit(left[4]));
}

TEST(Reference, FunctionsWithPartialDerivatives) {
  auto square = custom_derivative(
      [](Expr<double> x) { return x * x; },
      [](Expr<double> x, Expr<double>) { return Expr<double>(2 * x); });
  auto body = [&](ArrayRef<double, 1> x) {
    x(1) = square(x(0)) + square(stop_gradient(x(1)));
  };
  EXPECT_EQ(after<double>({3, 2}, body), (Doubles{3, 13}));
}

/// `&` decides whether its right operand is needed.
TEST(Reference, ReadsAfterTheEndOnlyWhereNotNeeded) {
  auto body = [](ArrayRef<double, 1> x) {
    FOR (i, 0, 3) {
      IF ((i < 2) & (x(i) > 1.0)) {
        x(0) += 10.0;
      }
    }
  };
  EXPECT_EQ(after<double>({1, 2}, body), (Doubles{11, 2}));
  auto write = [](ArrayRef<double, 1> x) { x(2) = 1.0; };
  EXPECT_TRUE(after<double>({1, 2}, write).empty());
}

} // namespace
