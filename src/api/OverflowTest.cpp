#include "costate/costate.h"
#include "costate/syntax.h"

#include <gtest/gtest.h>

#include <limits>

using namespace costate;

namespace {

/// What a kernel of one operation prints in debug mode.
template <class T, class F> std::string printed(F operation, T a, T b) {
  Kernel sum = kernel(
      "k",
      [&](ArrayRef<T, 1> x) { x(0) = operation(Expr<T>(x(0)), Expr<T>(x(1))); },
      KernelOptions{.debug = true});
  Array<T> x = Device::best().array<T>({2});
  x.from_host(std::vector<T>{a, b});
  testing::internal::CaptureStdout();
  sum(x);
  return testing::internal::GetCapturedStdout();
}

auto add = [](auto a, auto b) { return a + b; };
auto subtract = [](auto a, auto b) { return a - b; };
auto multiply = [](auto a, auto b) { return a * b; };
auto shift = [](auto a, auto b) { return a << b; };

template <class F, class T>
void expectAtTheEdge(F operation, const char *name, T a, T fits, T leaves) {
  EXPECT_EQ(printed(operation, a, fits), "") << name << " " << +a;
  std::string text = printed(operation, a, leaves);
  EXPECT_NE(text.find(std::string(name) + " overflow detected in File"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("OverflowTest.cpp"), std::string::npos) << text;
}

template <class T> class Overflows : public testing::Test {};
using Integers = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t,
                                uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Overflows, Integers);

TYPED_TEST(Overflows, AreReportedFromTheFirstNumberOutside) {
  using T = TypeParam;
  constexpr T least = std::numeric_limits<T>::min(),
              most = std::numeric_limits<T>::max();
  constexpr T bits = T(8 * sizeof(T) - 2);
  expectAtTheEdge(add, "Addition", T(most - 3), T(3), T(4));
  expectAtTheEdge(subtract, "Subtraction", T(least + 3), T(3), T(4));
  expectAtTheEdge(multiply, "Multiplication", T(3), T(most / 3),
                  T(most / 3 + 1));
  expectAtTheEdge(multiply, "Multiplication", T(most / 3), T(3), T(4));
  EXPECT_EQ(printed(multiply, T(0), most), "");
  expectAtTheEdge(shift, "Shift left", T(3), T(bits - 1), T(bits + 1));
  if (least != 0) {
    expectAtTheEdge(add, "Addition", T(least + 3), T(-3), T(-4));
    expectAtTheEdge(subtract, "Subtraction", T(most - 3), T(-3), T(-4));
    expectAtTheEdge(multiply, "Multiplication", T(-1), T(least + 1), least);
    expectAtTheEdge(multiply, "Multiplication", least, T(1), T(-1));
    expectAtTheEdge(multiply, "Multiplication", T(-3), T(most / 3),
                    T(most / 3 + 1));
  }
}

TEST(Overflow, ConditionsAndFloatsAreSilent) {
  EXPECT_EQ(printed(add, 3e38f, 3e38f), "");
  Kernel sum = kernel(
      "k",
      [](ArrayRef<int, 1> x) {
        WHILE (x(0) * 2 > 0) {
          x(0) += 1;
        }
      },
      KernelOptions{.debug = true});
  Array<int> x = Device::best().array<int>({1});
  x.from_host(std::vector<int>{(1 << 30) - 2});
  testing::internal::CaptureStdout();
  sum(x);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

} // namespace
