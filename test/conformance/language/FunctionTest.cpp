/// Functions that kernels call, recursion, and what is fixed when a kernel is
/// made.

#include "conformance/Errors.h"
#include "conformance/Gradients.h"

#include <functional>

using namespace costate;
using namespace costate::test;

namespace {

using X = ArrayRef<double, 1>;
using Values = std::vector<double>;
using Real = Expr<double>;

TEST(Function, IsCalledLikeAnyOther) {
  auto gauss = function(
      "gauss", [](Real x, Real s) { return exp(-x * x / (2.0 * s * s)); });
  auto twice = function(
      "twice", [&](Real x) { return gauss(x, 0.5) + gauss(x + 1.0, 1); });
  auto store = function("store", [](X y, Index i, Real v) { y(i) = v; });
  Kernel k = kernel("k", [&](X x, X y) {
    parallel(x, [&](Index i) { store(y, i, twice(x(i)) * twice(x(0))); });
  });
  auto x = active<double>({0.3, 1.2, -0.7}), y = active(Values(3));
  expectGradients({x}, {y}, k, x, y);
}

/// `at` is the line of the message.
void expectRecursion(const std::string &text, int line,
                     const std::function<void(X)> &body) {
  expectError(ErrorCode::BadKernel, {text, here(__FILE__, line), "loop"},
              [&] { kernel("recursive", [&](X x) { body(x); }); });
}

TEST(Function, ThatCallsItselfIsRefusedByName) {
  std::function<Real(Real)> factorial;
  int line = __LINE__ + 1;
  factorial = function("factorial", [&](Real n) -> Real {
    Var<double> result = 1.0;
    IF (n > 1) {
      result = n * factorial(n - 1.0);
    }
    return result;
  });
  expectRecursion("function `factorial` calls itself", line, [&](X x) {
    parallel(x, [&](Index i) { x(i) = factorial(x(i)); });
  });
}

TEST(Function, ThatCallsItselfThroughAnotherIsRefusedByName) {
  std::function<Real(Real)> even;
  auto odd = function("odd", [&](Real n) { return 1.0 - even(n); });
  int line = __LINE__ + 1;
  even = function("even", [&](Real n) -> Real {
    Var<double> result = 0.0;
    IF (n > 0) {
      result = odd(n - 1.0);
    }
    return result;
  });
  expectRecursion("function `even` calls itself", line, [&](X x) {
    parallel(x, [&](Index i) { x(i) = even(x(i)); });
  });
}

/// After a refusal nothing is left open.
TEST(Function, CanBeUsedAfterARefusal) {
  bool recurs = true;
  std::function<Real(Real)> f;
  f = function("f", [&](Real x) -> Real { return recurs ? f(x) : x * x; });
  auto body = [&](X x) { x(0) = f(x(0)); };
  EXPECT_THROW(kernel("bad", body), Error);
  recurs = false;
  Kernel good = kernel("good", body);
  auto x = constant<double>({3});
  good(x);
  EXPECT_EQ(x.to_host()[0], 9);
}

// Tracing takes both branches, as the compiler sees.
#ifdef __clang__
#pragma clang diagnostic ignored "-Winfinite-recursion"
#endif

/// A C++ function has no name that could be told, but a place.
TEST(Function, PlainRecursionEnds) {
  struct Plain {
    static Real branching(Real n) {
      Var<double> result = 1.0;
      IF (n > 1) {
        result = n * branching(n - 1.0);
      }
      return result;
    }
    static Real straight(Real n) {
      return select(n < 1, 1.0, straight(n - 1.0));
    }
  };
  for (auto *f : {&Plain::branching, &Plain::straight})
    expectError(ErrorCode::BadKernel,
                {"FunctionTest.cpp:", "calls itself without end", "loop"},
                [&] { kernel("k", [&](X x) { x(0) = f(x(0)); }); });
}

/// A number of the host ends it.
Real power(Real x, int n) {
  if (n == 0)
    return 1.0;
  Real half = power(x, n / 2);
  return n % 2 ? half * half * x : half * half;
}

TEST(Specialisation, ByHostValues) {
  for (int n : {0, 1, 5, 8}) {
    Kernel k = kernel("power", [&](X x, X y) {
      parallel(x, [&](Index i) { y(i) = power(x(i), n); });
    });
    auto x = active<double>({0.5, 1.5}), y = active(Values(2));
    expectGradients({x}, {y}, k, x, y);
    EXPECT_NEAR(y.to_host()[1] + 0, 0, 0); // reset by expectGradients
    k(x, y);
    EXPECT_DOUBLE_EQ(y.to_host()[1], std::pow(1.5, n));
  }
}

template <class T> Kernel axpy(T a, bool squares) {
  return kernel("axpy", [=](ArrayRef<T, 1> x, ArrayRef<T, 1> y) {
    parallel(x, [&](Index i) {
      if (squares)
        y(i) += a * x(i) * x(i);
      else
        y(i) += a * x(i);
    });
  });
}

template <class T> void expectAxpy() {
  for (bool squares : {false, true}) {
    Kernel k = axpy<T>(T(3), squares);
    auto x = constant<T>({1, 2, 4}), y = constant<T>({1, 1, 1});
    k(x, y);
    EXPECT_EQ(y.to_host(), squares ? (std::vector<T>{4, 13, 49})
                                   : (std::vector<T>{4, 7, 13}));
  }
}

TEST(Specialisation, ByTypes) {
  expectAxpy<int>();
  expectAxpy<uint64_t>();
  expectAxpy<float>();
  expectAxpy<double>();
}

/// Sizes of private arrays and of vectors are template arguments.
template <int N> Kernel sorted() {
  return kernel("sorted", [](X x, X y) {
    Local<double, N> a;
    for (int i = 0; i < N; ++i)
      a[i] = x(i);
    for (int i = 0; i < N; ++i)
      for (int j = 0; j + 1 < N - i; ++j) {
        Real low = min(a[j], a[j + 1]), high = max(a[j], a[j + 1]);
        a[j] = low;
        a[j + 1] = high;
      }
    for (int i = 0; i < N; ++i)
      y(i) = a[i];
  });
}

TEST(Specialisation, ByTemplateArguments) {
  auto x = active<double>({4, 1, 3, 2}), y = active(Values(4));
  sorted<4>()(x, y);
  EXPECT_EQ(y.to_host(), (Values{1, 2, 3, 4}));
  expectGradients({x}, {y}, sorted<4>(), x, y);
  sorted<2>()(x, y);
  EXPECT_EQ(y.to_host()[0], 1);
}

} // namespace
