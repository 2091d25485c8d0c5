/// Rules of differentiation and replay that have no small program of their own
/// elsewhere (docs/design/semantics.md).

#include "conformance/Gradients.h"

#include <limits>

using namespace costate;
using namespace costate::test;

namespace {

using Values = std::vector<double>;
using X = ArrayRef<double, 1>;

/// Elements are overwritten, but no derivative needs their values.
// RULE: needed-values
TEST(Semantics, OnlyNeededValuesMustStay) {
  Kernel scaled = kernel("scaled", [](X x, X v) {
    parallel(x.size(), [&](Index i) { x(i) = 2.0 * x(i) + v(i) + 1.0; });
  });
  Kernel unused = kernel("unused", [](X x, X v) {
    parallel(x.size(), [&](Index i) {
      Var<double> product = x(i), sum = 0.0;
      FOR (j, 0, 5) {
        product = product * x(i); // nothing uses it after the loop
        sum += v(i);
      }
      x(i) = 2.0 * x(i) + 1.0 + sum;
    });
  });
  auto x = active<double>({1, -2}), v = active<double>({3, 4});
  expectClosedForm({x, v}, {x}, {{2, 2}, {1, 1}}, scaled, x, v);
  expectClosedForm({x, v}, {x}, {{2, 2}, {5, 5}}, unused, x, v);
}

// RULE: final-state
TEST(Semantics, AWorkItemReloadsWhatItStored) {
  Kernel k = kernel("own", [](X x, X y, X z) {
    parallel(x.size(), [&](Index i) {
      y(i) = sin(x(i));
      z(i) = y(i) * y(i) * x(i);
    });
  });
  Values start{0.3, 1.2, -2}, want;
  for (double v : start)
    want.push_back(2 * std::sin(v) * std::cos(v) * v +
                   std::sin(v) * std::sin(v));
  auto x = active(start), y = active<double>({0, 0, 0}),
       z = active<double>({0, 0, 0});
  expectClosedForm({x}, {z}, {want}, k, x, y, z);
}

/// One side reads what the other side would have overwritten.
// RULE: final-state
TEST(Semantics, SidesOfABranchDoNotDisturbEachOther) {
  Kernel k = kernel("sides", [](X g, X x, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) {
      IF (g(i) > 0) {
        x(i) = 7.0;
      }
      ELSE { s() += x(i) * x(i); }
    });
  });
  auto g = constant<double>({1, -1}), x = active<double>({2, 3});
  Array<double> s = cpu().array<double>({}, grad | dual);
  expectClosedForm({x}, {s}, {{0, 6}}, k, g, x, s);
}

// RULE: updates
TEST(Semantics, SerialCodeReadsWhatItAdds) {
  Kernel k = kernel("running", [](X x, ArrayRef<double, 0> s, X y) {
    FOR (t, 0, x.size()) {
      s() += x(t);
      y(t) = 3.0 * s();
    }
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  Array<double> s = cpu().array<double>({}, grad | dual);
  expectClosedForm({x, s}, {y}, {{9, 6, 3}, {9}}, k, x, s, y);
}

/// The everyday step of a simulation: the element belongs to one work item.
// RULE: updates
TEST(Semantics, AWorkItemReadsItsOwnSum) {
  Kernel k = kernel("advance", [](X x, X v, X y) {
    parallel(x.size(), [&](Index i) {
      x(i) += 0.5 * v(i);
      y(i) = x(i) * x(i);
    });
  });
  auto x = active<double>({1, -2}), v = active<double>({2, 6}),
       y = active<double>({0, 0});
  expectClosedForm({x, v}, {y}, {{4, 2}, {2, 1}}, k, x, v, y);
}

// RULE: serial-values
TEST(Semantics, ASharedValueGetsTheSumOfAllWorkItemsOnce) {
  Kernel k = kernel("shared", [](ArrayRef<double, 0> p, X x, X y) {
    Expr<double> scale = p() * p();
    parallel(x.size(), [&](Index i) {
      FOR (j, 0, 3) {
        y(i) += scale * x(i);
      }
      IF (x(i) > 2) {
        y(i) += scale;
      }
    });
    parallel(x.size(), [&](Index i) { y(i) += scale; });
  });
  Array<double> p = cpu().array<double>({}, grad | dual);
  p.fill(5);
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  expectClosedForm({p}, {y}, {{2 * 5 * (3 * 6 + 1 + 3.0)}}, k, p, x, y);
}

/// The extent of a range is a value of serial code; so is a bound inside of it.
// RULE: serial-values
TEST(Semantics, ExtentsAndBoundsComeFromSerialCode) {
  Kernel k = kernel("extents", [](ArrayRef<int, 1> n, X x, X y) {
    Var<int64_t> count = 0;
    FOR (t, 0, n.size()) {
      count += cast<int64_t>(n(t));
    }
    parallel(count, [&](Index i) {
      Var<double> v = x(i);
      FOR (j, 0, count) {
        v = v * x(i);
      }
      y(i) = v;
    });
  });
  auto x = active<double>({1.5, -1, 7}), y = active<double>({0, 0, 0});
  expectClosedForm({x}, {y}, {{3 * 1.5 * 1.5, 3, 0}}, k,
                   constant<int>({3, -2, 1}), x, y);
}

// RULE: stores-clear
TEST(Semantics, ConstantsClearAndIntegersCarryNothing) {
  Kernel k = kernel("clears", [](X x, ArrayRef<int, 1> m, X y, X z) {
    parallel(x.size(), [&](Index i) {
      m(i) = cast<int>(x(i));
      y(i) = 10.0 * x(i) + cast<double>(m(i));
      IF (x(i) > 1) {
        y(i) = 4.0;
      }
      z(i) = 3.0;
    });
  });
  auto x = active<double>({0.5, 1.5}), y = active<double>({0, 0}),
       z = active<double>({1, 2});
  auto m = constant<int>({0, 0});
  expectClosedForm({x, z}, {y, z}, {{10, 0}, {0, 0}}, k, x, m, y, z);
  EXPECT_EQ(y.grad().to_host(), (Values{0, 0}));
}

/// The element's adjoint is taken and cleared at the place of the store: what
/// an earlier read adds to it comes after that.
// RULE: stores-clear
TEST(Semantics, ReadsInFrontOfAStoreAddAfterTheClear) {
  Kernel k = kernel("in_place", [](X x, X y) {
    parallel(x.size(), [&](Index i) {
      y(i) = 5.0 * x(i);
      x(i) = 3.0 * x(i);
      y(i) += x(i);
    });
  });
  auto x = active<double>({1, 2}), y = active<double>({0, 0});
  k(x, y);
  x.grad().from_host({1, 100});
  y.grad().fill(1);
  k.grad(x, y);
  EXPECT_EQ(x.grad().to_host(), (Values{5 + 3 * (1 + 1), 5 + 3 * (100 + 1)}));
}

/// An adjoint of zero hides an infinite factor; a factor of zero hides nothing.
// RULE: zeros
TEST(Semantics, AnInfiniteAdjointIsNotHiddenByAZero) {
  Kernel k = kernel("product", [](X w, X x, X y) {
    parallel(x.size(), [&](Index i) { y(i) = w(i) * x(i); });
  });
  constexpr double inf = std::numeric_limits<double>::infinity();
  auto w = constant<double>({0, inf}), x = active<double>({1, 1}),
       y = active<double>({0, 0});
  k(w, x, y);
  y.grad().from_host({inf, 0});
  k.grad(w, x, y);
  EXPECT_TRUE(std::isnan(x.grad().to_host()[0]));
  EXPECT_EQ(x.grad().to_host()[1], 0);
}

/// What a gradient reads and writes beside adjoints: nothing that remains.
// RULE: initial-state
TEST(Semantics, AGradientLeavesValuesAndTangentsAlone) {
  Kernel k = kernel("parts", [](X x, X y, ArrayRef<double, 0> s) {
    parallel(x.size(), [&](Index i) { y(i) = x(i) * x(i); });
    s() = s() * 0.5;
    parallel(x.size(), [&](Index i) { s() += y(i) * y(i); });
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  Array<double> s = cpu().array<double>({}, grad | dual);
  s.fill(8);
  x.dual().fill(1);
  k.jvp(x, y, s);
  Values values[] = {x.to_host(), y.to_host(), s.to_host()};
  Values tangents[] = {x.dual().to_host(), y.dual().to_host(),
                       s.dual().to_host()};
  s.grad().fill(1);
  k.grad(x, y, s);
  EXPECT_EQ(x.grad().to_host(), (Values{4, 32, 108}));
  EXPECT_EQ(values[0], x.to_host());
  EXPECT_EQ(values[1], y.to_host());
  EXPECT_EQ(values[2], s.to_host());
  EXPECT_EQ(tangents[0], x.dual().to_host());
  EXPECT_EQ(tangents[1], y.dual().to_host());
  EXPECT_EQ(tangents[2], s.dual().to_host());
}

} // namespace
