/// Atomics that return what the element was: values, what a gradient may do
/// with them, and what is refused.

#include "Labels.h"
#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <algorithm>
#include <limits>
#include <numeric>

COSTATE_LABEL("*", waits);
COSTATE_LABEL("Atomic.*", sample);

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using S = ArrayRef<double, 0>;
using Values = std::vector<double>;

/// Where the mistake is: set in front of it.
int line = 0;

template <class T> std::vector<T> sorted(Array<T> array) {
  std::vector<T> values = array.to_host();
  std::ranges::sort(values);
  return values;
}

/// Of rank 0.
template <class T> Array<T> counter(T value) {
  Array<T> array = cpu().array<T>({});
  array.from_host({value});
  return array;
}
Array<double> scalar(double value) {
  Array<double> array = cpu().array<double>({}, grad | dual);
  array.from_host({value});
  return array;
}

/// Each of the old values is there once, whatever the order was.
template <class T> class Atomics : public testing::Test {
protected:
  using Type = ArrayRef<T, 1>;
  static constexpr int n = 1000;

  void SetUp() override {
    old = constant<T>(std::vector<T>(n));
    element = constant<T>({0});
  }

  template <class F> void run(T start, F &&step) {
    element.from_host({start});
    Kernel k = kernel("step", [&](Type e, Type old) {
      parallel(n, [&](Index i) { old(i) = step(e(0), cast<T>(i)); });
    });
    k(element, old);
  }
  T left() { return element.to_host()[0]; }

  Array<T> old, element;
};

using Types = testing::Types<int16_t, uint16_t, int32_t, uint32_t, int64_t,
                             uint64_t, float, double>;
TYPED_TEST_SUITE(Atomics, Types);

TYPED_TEST(Atomics, AddAndSubtract) {
  using T = TypeParam;
  std::vector<T> expected(this->n);
  std::iota(expected.begin(), expected.end(), T(5));
  this->run(5, [](auto e, auto) { return atomic_add(e, 1); });
  EXPECT_EQ(sorted(this->old), expected);
  EXPECT_EQ(this->left(), T(1005));
  std::iota(expected.begin(), expected.end(), T(6));
  this->run(1005, [](auto e, auto) { return atomic_sub(e, 1); });
  EXPECT_EQ(sorted(this->old), expected);
  EXPECT_EQ(this->left(), T(5));
}

TYPED_TEST(Atomics, MinimumAndMaximum) {
  using T = TypeParam;
  this->run(2000, [](auto e, auto i) { return atomic_min(e, i + 7); });
  EXPECT_EQ(this->left(), T(7));
  // What was there has come from some work item, or from the start.
  for (T value : this->old.to_host())
    EXPECT_TRUE(value >= 7 && (value < 1007 || value == 2000)) << value;
  EXPECT_EQ(sorted(this->old).back(), T(2000));
  this->run(0, [](auto e, auto i) { return atomic_max(e, i); });
  EXPECT_EQ(this->left(), T(999));
  EXPECT_EQ(sorted(this->old).front(), T(0));
}

/// What is put in comes out, each once.
TYPED_TEST(Atomics, Exchange) {
  using T = TypeParam;
  this->run(4000, [](auto e, auto i) { return atomic_exchange(e, i); });
  std::vector<T> all = this->old.to_host();
  all.push_back(this->left());
  std::ranges::sort(all);
  std::vector<T> expected(this->n);
  std::iota(expected.begin(), expected.end(), T(0));
  expected.push_back(4000);
  EXPECT_EQ(all, expected);
}

TYPED_TEST(Atomics, CompareExchange) {
  using T = TypeParam;
  this->run(
      3, [](auto e, auto i) { return atomic_compare_exchange(e, 3, i + 10); });
  std::vector<T> all = this->old.to_host();
  EXPECT_EQ(std::ranges::count(all, T(3)), 1);
  auto winner = std::ranges::find(all, T(3)) - all.begin();
  EXPECT_EQ(this->left(), T(winner + 10));
  EXPECT_EQ(std::ranges::count(all, this->left()), this->n - 1);
}

TYPED_TEST(Atomics, Bits) {
  using T = TypeParam;
  if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    this->run(0, [](auto e, auto i) { return atomic_or(e, T(1) << (i % 30)); });
    EXPECT_EQ(this->left(), T((1 << 30) - 1));
    EXPECT_EQ(sorted(this->old).front(), T(0));
    this->run(1023,
              [](auto e, auto i) { return atomic_and(e, ~(T(1) << (i % 9))); });
    EXPECT_EQ(this->left(), T(512));
    EXPECT_EQ(sorted(this->old).back(), T(1023));
    this->run(0, [](auto e, auto i) { return atomic_xor(e, i); });
    EXPECT_EQ(this->left(), T(0)); // of 0 to 999
  }
}

TEST(Atomic, ElementsOfEightBitsAndHalves) {
  Kernel k =
      kernel("narrow", [](ArrayRef<int8_t, 1> a, ArrayRef<uint8_t, 1> b,
                          ArrayRef<f16, 1> h, ArrayRef<int, 1> seen, X old) {
        parallel(200, [&](Index i) {
          atomic_add(seen(cast<int>(atomic_add(b(1), 1))), 1);
          atomic_xor(a(1), cast<int8_t>(i));
          atomic_max(a(2), cast<int8_t>(i % 100 - 50));
          old(i) = cast<double>(atomic_add(h(1), 0.5));
          atomic_compare_exchange(h(2), 1.5, cast<f16>(i + 10));
          atomic_exchange(b(2), 7);
        });
      });
  auto a = constant<int8_t>({1, -7, -100, 4});
  auto b = constant<uint8_t>({1, 3, 3, 4});
  auto h = constant<f16>({1, 2, 1.5, 4});
  auto seen = constant(std::vector<int>(256));
  auto old = constant(Values(200));
  k(a, b, h, seen, old);
  int8_t bits = -7;
  for (int i = 0; i < 200; ++i)
    bits = int8_t(bits ^ i);
  EXPECT_EQ(a.to_host(), (std::vector<int8_t>{1, bits, 49, 4}));
  EXPECT_EQ(b.to_host(), (std::vector<uint8_t>{1, 203, 7, 4}));
  std::vector<int> once(256);
  std::fill_n(once.begin() + 3, 200, 1);
  EXPECT_EQ(seen.to_host(), once);
  Values halves;
  for (int i = 0; i < 200; ++i)
    halves.push_back(2 + 0.5 * i);
  EXPECT_EQ(sorted(old), halves);
  EXPECT_EQ(double(h.to_host()[0]), 1);
  EXPECT_EQ(double(h.to_host()[1]), 102);
  EXPECT_GE(double(h.to_host()[2]), 10);
  EXPECT_EQ(double(h.to_host()[3]), 4);
}

/// As IEEE 754 says: only -0 changes when 0 is added to it.
TEST(Atomic, AddingZeros) {
  Kernel k = kernel("zeros", [](ArrayRef<int, 1> at, X x, X y) {
    parallel(at.size(0), [&](Index i) { y(at(i)) += x(i); });
  });
  Values sums = {-0.0, -0.0, 0.0, 0.0, -3, -0.0};
  Values terms = {0.0, -0.0, 0.0, -0.0, -0.0, -5};
  auto y = constant(sums);
  k(constant<int>({0, 1, 2, 3, 4, 5}), constant(terms), y);
  Values left = y.to_host();
  for (size_t i = 0; i < sums.size(); ++i) {
    double expected = sums[i] + terms[i];
    EXPECT_EQ(left[i], expected);
    EXPECT_EQ(std::signbit(left[i]), std::signbit(expected)) << i;
  }
}

/// Each element is a byte; neighbours in its word are left alone.
TEST(Atomic, TruthValues) {
  using B = ArrayRef<bool, 1>;
  Kernel k = kernel("flags", [](B flag, ArrayRef<int, 1> seen) {
    parallel(200, [&](Index i) {
      flag(1) |= i == 150;
      flag(2) &= i != 150;
      flag(3) ^= true;
      auto count = [&](int at, Expr<bool> old) {
        seen(at) += select(old, 1, 0);
      };
      count(0, atomic_or(flag(5), true));
      count(1, atomic_and(flag(6), false));
      count(2, atomic_xor(flag(7), i != 9));
      count(3, atomic_exchange(flag(9), i % 2 == 0));
      count(4, atomic_compare_exchange(flag(10), false, true));
      count(5, atomic_compare_exchange(flag(11), true, i == 200));
    });
  });
  std::vector<bool> start = {true,  false, true,  false, true, false, true,
                             false, true,  false, false, true, false};
  auto flag = constant(start);
  auto seen = constant(std::vector<int>(6));
  k(flag, seen);
  std::vector<bool> got = flag.to_host();
  bool last = got[9];
  EXPECT_EQ(got, (std::vector<bool>{true, true, false, false, true, true, false,
                                    true, true, last, true, false, false}));
  // 199 changes of flag 7, of which every other one finds it set; the values
  // put into flag 9 come out, but for the last one.
  std::vector<int> counts = seen.to_host();
  EXPECT_EQ(counts[0], 199);
  EXPECT_EQ(counts[1], 1);
  EXPECT_GE(counts[2], 99);
  EXPECT_LE(counts[2], 100);
  EXPECT_EQ(counts[3], 100 - last);
  EXPECT_EQ(counts[4], 199);
  EXPECT_EQ(counts[5], 1);
}

/// On integers as well.
TEST(Atomic, BitsByAssignment) {
  Kernel k = kernel("bits", [](ArrayRef<uint32_t, 0> a, ArrayRef<int8_t, 1> b) {
    parallel(30, [&](Index i) {
      a() |= 1u << cast<uint32_t>(i);
      b(1) ^= cast<int8_t>(i);
      b(2) &= cast<int8_t>(~(1 << cast<int>(i % 5)));
    });
  });
  auto a = cpu().array<uint32_t>({});
  auto b = constant<int8_t>({1, 0, -1, 7});
  k(a, b);
  EXPECT_EQ(a.to_host()[0], (1u << 30) - 1);
  EXPECT_EQ(b.to_host(), (std::vector<int8_t>{1, 1, -32, 7}));
}

/// What steers a gradient and comes from an atomic of truth values: where
/// nobody interrupts it is read again.
TEST(Atomic, GradientsBesideTruthValues) {
  Kernel k = kernel("gated", [](ArrayRef<bool, 1> flag, X x, S y) {
    parallel(x.size(), [&](Index i) {
      Expr<bool> old = atomic_or(flag(i), x(i) > 1);
      IF (old) {
        y() += x(i) * x(i);
      }
      ELSE { y() += 3.0 * x(i); }
    });
  });
  auto flag = constant<bool>({true, false, true, false});
  auto x = active<double>({0.5, 2, 3, -1});
  auto y = scalar(0);
  y.grad().fill(1);
  k.grad(initial_state, flag, x, y);
  EXPECT_EQ(x.grad().to_host(), (Values{1, 3, 6, 3}));
  k(flag, x, y);
  EXPECT_EQ(flag.to_host(), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(y.to_host()[0], 0.25 + 6 + 9 - 3);
}

/// Products by compare-exchange, as for any operation that has no atomic.
TEST(Atomic, LoopsOfCompareExchange) {
  Kernel k = kernel("product", [](S e) {
    parallel(20, [&](Index i) {
      Expr<double> factor = 1.0 + cast<double>(i);
      Var<double> seen = 1.0, expected = 0.0;
      WHILE (seen != expected) {
        expected = seen;
        seen = atomic_compare_exchange(e(), expected, expected * factor);
      }
    });
  });
  auto e = counter<double>(1);
  k(e);
  EXPECT_EQ(e.to_host()[0], 2432902008176640000.0);
}

/// Floats are compared by their bits.
TEST(Atomic, CompareExchangeOfNaNAndZeros) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Kernel k = kernel("bits", [](X e, X expected, X old) {
    parallel(e.size(), [&](Index i) {
      old(i) = atomic_compare_exchange(e(i), expected(i), 7.0);
    });
  });
  auto e = constant<double>({nan, 0.0, -0.0, 1.0});
  auto expected = constant<double>({nan, -0.0, -0.0, 1.0});
  auto old = constant<double>({5, 5, 5, 5});
  k(e, expected, old);
  EXPECT_EQ(e.to_host(), (Values{7, 0, 7, 7}));
  EXPECT_TRUE(std::isnan(old.to_host()[0]));
  EXPECT_TRUE(std::signbit(old.to_host()[2]));
}

TEST(Atomic, ElementsOfSeveralDimensionsAndOfVectors) {
  Kernel k =
      kernel("shapes", [](ArrayRef<int, 3> a, ArrayRef<Vec<float, 3>, 1> v,
                          ArrayRef<int, 1> old) {
        parallel({2, 3, 4}, [&](Index i, Index j, Index l) {
          atomic_add(old(atomic_or(a(i, j, l), 1)), 1);
          atomic_max(v(i).y(), cast<float>(j));
        });
      });
  auto a = constant<int>(std::vector<int>(24, 2), {2, 3, 4});
  Array<Vec<float, 3>> v = cpu().array<Vec<float, 3>>({2});
  auto old = constant<int>({0, 0, 0});
  k(a, v, old);
  EXPECT_EQ(a.to_host(), std::vector<int>(24, 3));
  EXPECT_EQ(old.to_host(), (std::vector<int>{0, 0, 24}));
  EXPECT_EQ(v.to_host()[1][1], 2.0f);
}

//===-- Gradients ---------------------------------------------------------===//

/// Nothing in the gradient depends on what the counter was.
TEST(Atomic, GradientsIgnoreCounters) {
  Kernel k = kernel("counted", [](X x, ArrayRef<int, 1> seen, X y) {
    parallel(x.size(), [&](Index i) {
      y(i) = x(i) * x(i);
      Expr<int> before = atomic_add(seen(0), 1);
      IF (before == 0) {
        seen(1) = 1;
      }
      atomic_or(seen(2), 4);
    });
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  auto seen = constant<int>({0, 0, 0});
  k(x, seen, y);
  EXPECT_EQ(seen.to_host(), (std::vector<int>{3, 1, 4}));
  y.grad().fill(1);
  k.grad(x, seen, y);
  EXPECT_EQ(x.grad().to_host(), (Values{2, 4, 6}));
  EXPECT_EQ(seen.to_host()[0], 3); // not counted again
}

/// The append: where a value went is left to chance.
TEST(Atomic, AppendingIsRefused) {
  int place = 0;
  Kernel k = kernel("append", [&](X x, ArrayRef<int, 0> count, X out) {
    parallel(x.size(), [&](Index i) {
      place = __LINE__ + 1;
      Expr<int> slot = atomic_add(count(), 1);
      out(slot) = x(i);
    });
  });
  auto x = active<double>({1, 2, 3}), out = active<double>({0, 0, 0});
  auto count = counter<int>(0);
  k(x, count, out);
  EXPECT_EQ(sorted(out), (Values{1, 2, 3}));
  EXPECT_EQ(count.to_host()[0], 3);
  expectError(ErrorCode::CannotReplay,
              {here(__FILE__, place),
               "the gradient needs what this atomic operation has returned",
               "a kernel in front of this one"},
              [&] { k.grad(x, count, out); });
  // Both sweeps of forward mode are one.
  x.dual().fill(1);
  count.from_host({0});
  k.jvp(x, count, out);
  EXPECT_EQ(out.dual().to_host(), (Values{1, 1, 1}));
}

/// What the error advises.
TEST(Atomic, SlotsThatAKernelInFrontHasStored) {
  Kernel place =
      kernel("place", [](X x, ArrayRef<int, 0> count, ArrayRef<int, 1> slots) {
        parallel(x.size(), [&](Index i) {
          slots(i) = -1;
          IF (x(i) > 0) {
            slots(i) = atomic_add(count(), 1);
          }
        });
      });
  Kernel gather = kernel("gather", [](X x, ArrayRef<int, 1> slots, X out) {
    parallel(x.size(), [&](Index i) {
      IF (slots(i) >= 0) {
        out(slots(i)) = x(i) * x(i);
      }
    });
  });
  auto x = active<double>({1, -2, 3}), out = active<double>({0, 0, 0});
  auto count = counter<int>(0), slots = constant<int>({0, 0, 0});
  place(x, count, slots);
  gather(x, slots, out);
  out.grad().fill(1);
  gather.grad(x, slots, out);
  EXPECT_EQ(x.grad().to_host(), (Values{2, 0, 6}));
}

TEST(Atomic, WhatSteersOrIsAValueIsRefused) {
  auto refused = [](auto &&body) {
    Kernel k = kernel("k", [&](X x, ArrayRef<int, 0> count, X out) {
      parallel(x.size(), [&](Index i) { body(x(i), count(), out(i)); });
    });
    auto x = active<double>({1, 2, 3}), out = active<double>({0, 0, 0});
    auto count = counter<int>(0);
    k(x, count, out);
    expectError(ErrorCode::CannotReplay, {here(__FILE__, line), "has returned"},
                [&] { k.grad(x, count, out); });
  };
  refused([](auto x, auto count, auto out) {
    line = __LINE__ + 1;
    IF (atomic_exchange(count, 1) == 0) {
      out = x * x;
    }
  });
  refused([](auto x, auto count, auto out) {
    line = __LINE__ + 1;
    out = x * cast<double>(atomic_add(count, 1));
  });
  refused([](auto x, auto count, auto out) {
    line = __LINE__ + 1;
    FOR (k, 0, atomic_max(count, 3)) {
      out += x * cast<double>(k);
    }
  });
  refused([](auto x, auto count, auto out) {
    line = __LINE__ + 1;
    Var<int> old = atomic_compare_exchange(count, 0, 1);
    WHILE (old > 0) {
      out += x;
      old -= 1;
    }
  });
}

/// On arrays with derivatives what is returned, or replaced, has none.
TEST(Atomic, ResultsWithDerivativesAreRefused) {
  auto refused = [](auto &&body) {
    Kernel k = kernel("k", [&](X x, S total, X out) {
      parallel(x.size(), [&](Index i) { body(x(i), total(), out(i)); });
    });
    auto x = active<double>({1, 2, 3}), out = active<double>({0, 0, 0});
    auto total = scalar(0);
    k(x, total, out);
    for (bool forward : {false, true})
      expectError(
          ErrorCode::NotDifferentiable,
          {here(__FILE__, line), "depends on the order of work items"},
          [&] { forward ? k.jvp(x, total, out) : k.grad(x, total, out); });
  };
  refused([](auto x, auto total, auto out) {
    line = __LINE__ + 1;
    out = atomic_add(total, x);
  });
  refused([](auto x, auto total, auto) {
    line = __LINE__ + 1;
    atomic_exchange(total, x);
  });
  refused([](auto x, auto total, auto) {
    line = __LINE__ + 1;
    atomic_compare_exchange(total, 0.0, x);
  });
  refused([](auto x, auto total, auto out) {
    line = __LINE__ + 1;
    out = atomic_min(total, x);
  });
}

/// Without a use of what they return, they are the statements.
TEST(Atomic, SumsAndExtremaWithoutResultsHaveDerivatives) {
  Kernel k = kernel("sums", [](X x, S total, S most) {
    parallel(x.size(), [&](Index i) {
      atomic_add(total(), x(i) * x(i));
      atomic_sub(total(), x(i));
      atomic_max(most(), x(i));
    });
  });
  auto x = active<double>({1, 5, 3});
  auto total = scalar(0), most = scalar(0);
  k(x, total, most);
  EXPECT_EQ(total.to_host()[0], 26);
  total.grad().fill(1);
  most.grad().fill(10);
  k.grad(x, total, most);
  EXPECT_EQ(x.grad().to_host(), (Values{1, 19, 5}));
}

/// In serial code, and on elements of its own, a work item is not interrupted.
TEST(Atomic, DerivativesWhereNobodyInterrupts) {
  Kernel k = kernel("own", [](X x, X y, S last) {
    parallel(x.size(), [&](Index i) {
      Expr<double> old = atomic_exchange(y(i), x(i) * x(i));
      Expr<double> square = atomic_add(y(i), sin(old));
      x(i) = square * old;
    });
    Expr<double> first = atomic_exchange(last(), y(0) * y(1));
    Expr<double> second = atomic_compare_exchange(last(), -1.0, 5.0);
    last() = first * second + atomic_add(y(2), 1.0);
  });
  auto x = active<double>({0.3, 1.2, -0.7}),
       y = active<double>({0.4, 0.5, 0.6});
  auto last = scalar(1.5);
  GradientCase c({x, y, last}, {x, y, last});
  Tape tape;
  auto gradientOf = [&] {
    c.reset();
    {
      auto recording = tape.record();
      k(x, y, last);
    }
    for (size_t a = 0; a < c.outputs.size(); ++a)
      c.outputs[a].grad().from_host(c.weights(a));
    tape.backward();
    std::vector<Values> all;
    for (Array<double> &array : c.inputs)
      all.push_back(array.grad().to_host());
    return all;
  };
  auto gradient = gradientOf();
  for (size_t input = 0; input < 3; ++input)
    for (size_t entry = 0; entry < gradient[input].size(); ++entry) {
      double forward = forwardEntry(c, input, entry, k, x, y, last);
      double difference = differenceEntry(c, input, entry, k, x, y, last);
      EXPECT_NEAR(gradient[input][entry], forward, 1e-12) << input << entry;
      EXPECT_NEAR(gradient[input][entry], difference, 1e-8) << input << entry;
    }
}

/// A counter of serial code may steer anything.
TEST(Atomic, CountersOfSerialCodeSteerGradients) {
  Kernel k = kernel("serial", [](X x, ArrayRef<int, 0> count, X y) {
    Expr<int> ticket = atomic_add(count(), 2);
    Expr<int> next = atomic_add(count(), 1);
    parallel(x.size(), [&](Index i) {
      IF (ticket == 4) {
        y(i) = x(i) * cast<double>(next);
      }
      ELSE { y(i) = sin(x(i)); }
    });
  });
  auto x = active<double>({1, 2, 3}), y = active<double>({0, 0, 0});
  auto count = counter<int>(4);
  Tape tape;
  {
    auto recording = tape.record();
    k(x, count, y);
  }
  EXPECT_EQ(count.to_host()[0], 7);
  y.grad().fill(1);
  tape.backward();
  EXPECT_EQ(x.grad().to_host(), (Values{6, 6, 6}));
}

//===-- Checks ------------------------------------------------------------===//

TEST(Atomic, DeterministicKernelsRefuseWhatChanceDecides) {
  Kernel k = kernel("k",
                    [](X x, ArrayRef<int, 0> count) {
                      parallel(x.size(), [&](Index) {
                        line = __LINE__ + 1;
                        Expr<int> slot = atomic_add(count(), 1);
                        x(slot) = 1;
                      });
                    },
                    {.deterministic = true});
  auto x = constant<double>({1, 2}), y = constant<double>({1, 2});
  auto count = counter<int>(0);
  expectError(ErrorCode::BadKernel,
              {here(__FILE__, line), "this kernel is deterministic"},
              [&] { k(x, count); });
  Kernel fixed = kernel("fixed",
                        [](ArrayRef<int, 0> count, ArrayRef<int, 1> own) {
                          Expr<int> start = atomic_add(count(), 1);
                          parallel(own.size(), [&](Index i) {
                            atomic_xor(count(), cast<int>(i));
                            own(i) = atomic_exchange(own(i), start) + 1;
                          });
                        },
                        {.deterministic = true});
  auto own = constant<int>({5, 6, 7});
  count.from_host({8});
  fixed(count, own);
  EXPECT_EQ(count.to_host()[0], 9 ^ 1 ^ 2);
  EXPECT_EQ(own.to_host(), (std::vector<int>{6, 7, 8}));
}

TEST(Atomic, ReadsBesideThemAreRaces) {
  if (!isOnCpu())
    GTEST_SKIP() << "races are looked for on the CPU";
  Kernel k = kernel("k",
                    [](ArrayRef<int, 1> flags, ArrayRef<int, 1> out) {
                      parallel(out.size(), [&](Index i) {
                        line = __LINE__ + 1;
                        out(i) = atomic_exchange(flags(0), 1) + flags(0);
                      });
                    },
                    {.debug = true});
  auto flags = constant<int>({0}), out = constant<int>({0, 0, 0, 0});
  expectError(ErrorCode::Race, {here(__FILE__, line)}, [&] { k(flags, out); });
  Kernel fine = kernel("fine",
                       [](ArrayRef<int, 1> flags, ArrayRef<int, 1> out) {
                         parallel(out.size(), [&](Index i) {
                           atomic_add(flags(0), 1);
                           out(i) = atomic_exchange(flags(0), 1);
                         });
                       },
                       {.debug = true});
  fine(flags, out);
}

TEST(Atomic, IndicesAreChecked) {
  Kernel k = kernel("k",
                    [](ArrayRef<int, 1> a, ArrayRef<int, 1> b) {
                      parallel(b.size(), [&](Index i) {
                        line = __LINE__ + 1;
                        b(i) = atomic_exchange(a(i), 1);
                      });
                    },
                    {.debug = true});
  auto a = constant<int>({0, 0}), b = constant<int>({0, 0, 0});
  expectError(ErrorCode::OutOfRange, {here(__FILE__, line), "outside"},
              [&] { k(a, b); });
}

} // namespace
