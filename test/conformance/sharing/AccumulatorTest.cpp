/// Sums, minima and masks of integers that all work items of a range make in
/// one element.

#include "conformance/Gradients.h"

#include <algorithm>
#include <numeric>

using namespace costate;
using namespace costate::test;

namespace {

template <class T> class IntegerAccumulator : public testing::Test {
protected:
  using A = ArrayRef<T, 1>;
  static constexpr int n = 5000;

  void SetUp() override {
    for (int i = 0; i < n; ++i)
      values.push_back(T(int64_t(i) * 2654435761 % 1000003 - 70));
    x = constant<T>(values);
  }

  /// What the elements become if all start as `start` and element 1 takes part.
  template <class F> std::vector<T> run(T start, F &&update) {
    Array<T> to = constant<T>({start, start, start});
    Kernel k = kernel("update", [&](A x, A to) {
      parallel(x.size(), [&](Index i) { update(to(1), x(i)); });
    });
    k(x, to);
    return to.to_host();
  }
  template <class F> T fold(T start, F &&step) {
    return std::accumulate(values.begin(), values.end(), start,
                           [&](T a, T b) { return T(step(a, b)); });
  }
  std::vector<T> beside(T start, T middle) { return {start, middle, start}; }

  std::vector<T> values;
  Array<T> x;
};

using Types = testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t,
                             uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(IntegerAccumulator, Types);

TYPED_TEST(IntegerAccumulator, IsWhatASequenceGives) {
  using T = TypeParam;
  auto is = [&](T start, auto update, auto step) {
    EXPECT_EQ(this->run(start, update),
              this->beside(start, this->fold(start, step)));
  };
  is(7, [](auto e, auto v) { e += v; }, [](T a, T b) { return T(a + b); });
  is(
      7, [](auto e, auto v) { atomic_sub(e, v); },
      [](T a, T b) { return T(a - b); });
  is(
      100, [](auto e, auto v) { atomic_min(e, v); },
      [](T a, T b) { return std::min(a, b); });
  is(
      100, [](auto e, auto v) { atomic_max(e, v); },
      [](T a, T b) { return std::max(a, b); });
  is(
      85, [](auto e, auto v) { atomic_and(e, v); },
      [](T a, T b) { return T(a & b); });
  is(
      1, [](auto e, auto v) { atomic_or(e, v); },
      [](T a, T b) { return T(a | b); });
  is(
      1, [](auto e, auto v) { atomic_xor(e, v); },
      [](T a, T b) { return T(a ^ b); });
}

TYPED_TEST(IntegerAccumulator, KnowsBranchesAndLoops) {
  using T = TypeParam;
  using A = ArrayRef<T, 1>;
  Array<T> to = constant<T>({3, 4});
  Kernel k = kernel("counts", [](A x, A to) {
    parallel(x.size(), [&](Index i) {
      IF (x(i) > cast<T>(20)) {
        FOR (j, 0, i % 3) {
          to(0) += cast<T>(1);
        }
      }
      to(1) += x(i);
      to(1) += cast<T>(2);
    });
  });
  k(this->x, to);
  T count = 3, sum = 4;
  for (int i = 0; i < this->n; ++i) {
    count = T(count + (this->values[i] > T(20) ? i % 3 : 0));
    sum = T(sum + this->values[i] + T(2));
  }
  EXPECT_EQ(to.to_host(), (std::vector<T>{count, sum}));
}

TEST(IntegerAccumulator, AnElementThatNoWorkItemComesToNeedNotBeThere) {
  Array<int> x = constant<int>(std::vector<int>(1000, 1));
  Array<int> none = constant<int>({});
  Kernel k = kernel("never", [](ArrayRef<int, 1> x, ArrayRef<int, 1> to) {
    parallel(x.size(), [&](Index i) {
      IF (x(i) > 1) {
        to(1000000000) += x(i);
      }
    });
  });
  k(x, none);
  EXPECT_EQ(none.to_host().size(), 0u);
}

TEST(IntegerAccumulator, SeveralDimensionsAndBools) {
  Array<int> count = constant<int>({0});
  Array<bool> any = cpu().array<bool>({1}), all = cpu().array<bool>({1});
  any.from_host({false});
  all.from_host({true});
  Kernel k = kernel("marks", [](ArrayRef<int, 1> count, ArrayRef<bool, 1> any,
                                ArrayRef<bool, 1> all) {
    parallel({70, 90}, [&](Index i, Index j) {
      count(0) += 1;
      atomic_or(any(0), i * j == 69 * 89);
      atomic_and(all(0), i + j < 158);
    });
  });
  k(count, any, all);
  EXPECT_EQ(count.to_host()[0], 6300);
  EXPECT_TRUE(any.to_host()[0]);
  EXPECT_FALSE(all.to_host()[0]);
}

} // namespace
