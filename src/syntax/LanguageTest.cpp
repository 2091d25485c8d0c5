/// What the embedded language records, and what it refuses to compile.

#include "syntax/Print.h"
#include "syntax/Trace.h"

#include "costate/custom_derivative.h"
#include "costate/math.h"
#include "costate/reduce.h"
#include "costate/syntax.h"
#include "costate/trace.h"

#include <gtest/gtest.h>

using namespace costate;

namespace {

template <class F> std::string trace(F body) {
  auto traced = detail::trace("k", body, Loc::current());
  return traced->failure ? traced->failure->text
                         : syntax::print(traced->outlined());
}

//===-- What does not compile ---------------------------------------------===//

template <class A>
concept HasTruth = requires(A a) { a ? 1 : 0; };
template <class A>
concept HasNot = requires(A a) { !a; };
template <class A, class B>
concept HasAndAnd = requires(A a, B b) { a && b; };
template <class A, class B>
concept HasPlus = requires(A a, B b) { a + b; };
template <class A, class B>
concept HasAnd = requires(A a, B b) { a & b; };

static_assert(!HasTruth<Expr<bool>> && !HasTruth<Var<bool>> &&
              !HasTruth<ElementRef<bool>> && !HasTruth<Scalar<bool>>);
static_assert(!HasTruth<Expr<double>> && !HasTruth<Var<int>>);
static_assert(!HasNot<Expr<bool>> && !HasNot<Var<bool>>);
static_assert(!HasAndAnd<Expr<bool>, Expr<bool>> &&
              !HasAndAnd<Expr<bool>, bool> && !HasAndAnd<bool, Expr<bool>>);
static_assert(!std::is_convertible_v<Expr<bool>, bool> &&
              !std::is_constructible_v<bool, Expr<bool>>);

static_assert(HasPlus<Index, int> && HasPlus<Index, Var<int>> &&
              HasPlus<Var<float>, double> && HasPlus<float, Var<double>> &&
              HasPlus<Var<long long>, Index>);
static_assert(!HasPlus<Index, double> && !HasPlus<Var<int>, Var<float>> &&
              !HasPlus<Var<double>, Index> && !HasPlus<Var<bool>, Var<bool>> &&
              !HasPlus<Var<uint64_t>, Var<int64_t>>);
static_assert(HasAnd<Var<bool>, bool> && HasAnd<Var<unsigned>, int> &&
              !HasAnd<Var<double>, Var<double>> && !HasAnd<Var<bool>, int>);
static_assert(!std::is_constructible_v<Var<int>, double> &&
              !std::is_constructible_v<Var<int>, Index> &&
              std::is_constructible_v<Var<double>, Var<float>>);
static_assert(!std::is_assignable_v<Var<int> &, double> &&
              std::is_assignable_v<Var<double> &, int>);

// Structures of variables copy and assign like any other.
struct Vec2 {
  Var<double> x, y;
};
static_assert(std::is_copy_constructible_v<Vec2> &&
              std::is_copy_assignable_v<Vec2> &&
              std::is_move_assignable_v<Vec2>);

template <class A>
concept HasSin = requires(A a) { sin(a); };
static_assert(HasSin<Var<float>> && HasSin<ElementRef<double>> &&
              !HasSin<Index> && !HasSin<Var<bool>>);

//===-- What is recorded --------------------------------------------------===//

TEST(Language, VariablesAreReadWhereTheyAreUsed) {
  EXPECT_EQ(trace([](ArrayRef<double, 1> x, Scalar<double> h) {
              Var<double> v = x(0);
              Var<double> w = v;
              v += h;
              w = v;
              x[1] = w;
            }),
            R"(kernel k(a0: array f64 1, a1: f64)
  %0 = scalar a1
  %1 = const 0 : i64
  %2 = load a0[%1]
  var v0 = %2
  %3 = read v0
  var v1 = %3
  %4 = read v0
  %5 = add %4, %0 : f64
  v0 = %5
  %6 = read v0
  v1 = %6
  %7 = read v1
  %8 = const 1 : i64
  store %7, a0[%8]
)");
}

TEST(Language, ElementsLoadStoreAndAdd) {
  EXPECT_EQ(trace([](const ArrayRef<float, 1> &x, ArrayRef<float, 0> y) {
              y() = x(2);
              y() += x(3);
              y() -= 1;
            }),
            R"(kernel k(a0: array f32 1, a1: array f32 0)
  %0 = const 2 : i64
  %1 = load a0[%0]
  store %1, a1[]
  %2 = const 3 : i64
  %3 = load a0[%2]
  atomic_add %3, a1[]
  %4 = const 1 : f32
  %5 = neg %4 : f32
  atomic_add %5, a1[]
)");
}

TEST(Language, ElementsAreUpdated) {
  EXPECT_EQ(trace([](ArrayRef<double, 1> x, ArrayRef<unsigned, 0> y) {
              atomic_add(x(2), 1);
              atomic_min(x(2), x(3));
              atomic_max(y(), 4);
            }),
            R"(kernel k(a0: array f64 1, a1: array u32 0)
  %0 = const 2 : i64
  %1 = const 1 : f64
  %2 = atomic_add %1, a0[%0]
  %3 = const 2 : i64
  %4 = const 3 : i64
  %5 = load a0[%4]
  %6 = atomic_min %5, a0[%3]
  %7 = const 4 : u32
  %8 = atomic_max %7, a1[]
)");
}

TEST(Language, AtomicsAndReductions) {
  EXPECT_EQ(trace([](ArrayRef<int, 1> x) {
              x(0) = atomic_exchange(x(1), 2);
              x(0) = atomic_compare_exchange(x(1), 2, 3);
              x(0) = sum(4, [&](Index i) { return x(i); });
            }),
            R"(kernel k(a0: array i32 1)
  %0 = const 1 : i64
  %1 = const 2 : i32
  %2 = exchange %1, a0[%0]
  %3 = const 0 : i64
  store %2, a0[%3]
  %4 = const 1 : i64
  %5 = const 2 : i32
  %6 = const 3 : i32
  %7 = compare_exchange %5 by %6, a0[%4]
  %8 = const 0 : i64
  store %7, a0[%8]
  %9 = const 4 : i64
  %13 = range (%10) in (%9) gives add %12
    %11 = load a0[%10]
    %12 = cast %11 : i64
  %14 = cast %13 : i32
  %15 = const 0 : i64
  store %14, a0[%15]
)");
}

template <class T, class A>
concept HasExtremum = requires(ArrayRef<T, 0> x, A value) {
  atomic_min(x(), value);
  atomic_max(x(), value);
};
static_assert(HasExtremum<double, float>);
static_assert(HasExtremum<int, int>);
static_assert(!HasExtremum<bool, bool>);
static_assert(!HasExtremum<int, double>);
static_assert(!HasExtremum<float, Expr<double>>);

TEST(Language, CustomDerivatives) {
  EXPECT_EQ(
      trace([](ArrayRef<double, 0> x, ArrayRef<float, 0> y) {
        auto f = custom_derivative(
            [](Expr<double> a, auto n) { return a * a + cast<double>(n); },
            [](Expr<double> a, Expr<int> n, Expr<double> r) {
              return 2.0 * a;
            });
        auto g = custom_derivative(
            [](auto a, Expr<float> b) {
              Var<float> v = a;
              return v;
            },
            [](auto a, auto b, auto r) { return std::tuple(r, 1); });
        x() = f(x(), Expr<int>(3));
        y() = stop_gradient(g(y(), 2.0f));
      }),
      R"(kernel k(a0: array f64 0, a1: array f32 0)
  %0 = const 3 : i32
  %1 = load a0[]
  %12 = custom (%1, %0) as (%2, %3)
    %4 = mul %2, %2 : f64
    %5 = cast %3 : f64
    %6 = add %4, %5 : f64
    gives %6
  partials (%7, %8, %9)
    %10 = const 2 : f64
    %11 = mul %10, %7 : f64
    gives %11
  store %12, a0[]
  %13 = load a1[]
  %14 = const 2 : f32
  %23 = custom (%13, %14) as (%15, %16)
    var v0 = %15
    %17 = read v0
    var v1 = %17
    %18 = read v1
    gives %18
  partials (%19, %20, %21)
    %22 = const 1 : f32
    gives %21, %22
  %24 = stop_gradient %23 : f32
  store %24, a1[]
)");
}

TEST(Language, OperandsWiden) {
  EXPECT_EQ(trace([](ArrayRef<int64_t, 1> x, Scalar<int> n, Scalar<float> f,
                     ArrayRef<double, 1> y) {
              x(n) = n;
              Expr<double> e = f;
              y(0) = e;
            }),
            R"(kernel k(a0: array i64 1, a1: i32, a2: f32, a3: array f64 1)
  %0 = scalar a1
  %1 = scalar a2
  %2 = cast %0 : i64
  %3 = cast %0 : i64
  store %2, a0[%3]
  %4 = cast %1 : f64
  %5 = const 0 : i64
  store %4, a3[%5]
)");
}

TEST(Language, AnElifIsAnIfInTheElseBranch) {
  EXPECT_EQ(trace([](ArrayRef<bool, 1> c, ArrayRef<int, 0> y) {
              IF (c(0)) {
                y() = 1;
              }
              ELIF (c(1)) {
                y() = 2;
              }
              ELSE { y() = 3; }
              y() = 4;
            }),
            R"(kernel k(a0: array bool 1, a1: array i32 0)
  %0 = const 0 : i64
  %1 = load a0[%0]
  if %1
    %2 = const 1 : i32
    store %2, a1[]
  else
    %3 = const 1 : i64
    %4 = load a0[%3]
    if %4
      %5 = const 2 : i32
      store %5, a1[]
    else
      %6 = const 3 : i32
      store %6, a1[]
  %7 = const 4 : i32
  store %7, a1[]
)");
}

TEST(Language, LoopsAndJumps) {
  EXPECT_EQ(trace([](ArrayRef<int, 1> x) {
              parallel(x.size(), [&](Index i) {
                FOR (k, 9, x(i), -1) {
                  IF (k == 3) {
                    CONTINUE;
                  }
                  BREAK;
                }
                WHILE (x(i) > 0) {
                  RETURN;
                }
              });
            }),
            R"(kernel k(a0: array i32 1)
  %0 = extent a0[0]
  range (%1) in (%0)
    %2 = const 9 : i64
    %3 = load a0[%1]
    %4 = cast %3 : i64
    %5 = const -1 : i64
    for %6 = %2 to %4 by %5
      %7 = const 3 : i64
      %8 = eq %6, %7 : bool
      if %8
        continue
      break
    while
      %9 = load a0[%1]
      %10 = const 0 : i32
      %11 = gt %9, %10 : bool
    do %11
      return
)");
}

/// The blocks and the plain functions record the same.
TEST(Language, EveryBlockHasAPlainFunction) {
  std::string blocks = trace([](ArrayRef<int, 1> x, Scalar<int> n) {
    Var<int> s = 0;
    FOR (k, 0, n) {
      IF (s > 3) {
        BREAK;
      }
      ELSE { CONTINUE; }
    }
    FOR (k, n, 0, -2) {
      s += 1;
    }
    WHILE (s > 0) {
      s -= 1;
    }
    RETURN;
  });
  std::string functions = trace([](ArrayRef<int, 1> x, Scalar<int> n) {
    Var<int> s = 0;
    for_(0, n,
         [&](Index) { if_(s > 3, [] { break_(); }, [] { continue_(); }); });
    for_(n, 0, -2, [&](Index) { s += 1; });
    while_([&] { return s > 0; }, [&] { s -= 1; });
    return_();
  });
  EXPECT_EQ(blocks, functions);
}

TEST(Language, HostControlFlowUnrolls) {
  std::string text = trace([](ArrayRef<double, 1> x) {
    for (int i = 0; i < 3; ++i)
      if (i != 1)
        x(i) = i;
  });
  EXPECT_EQ(text, R"(kernel k(a0: array f64 1)
  %0 = const 0 : f64
  %1 = const 0 : i64
  store %0, a0[%1]
  %2 = const 2 : f64
  %3 = const 2 : i64
  store %2, a0[%3]
)");
}

template <class T> Expr<T> square(Expr<T> x) { return x * x; }
Vec2 rotated(const Vec2 &a) { return {-a.y, a.x}; }

TEST(Language, StructuresAndFunctionsAreBuildingBlocks) {
  EXPECT_EQ(trace([](ArrayRef<double, 1> x) {
              Vec2 a{x(0), 1}, b;
              b = rotated(a);
              x(0) = square<double>(b.x);
            }),
            R"(kernel k(a0: array f64 1)
  %0 = const 0 : i64
  %1 = load a0[%0]
  var v0 = %1
  %2 = const 1 : f64
  var v1 = %2
  %3 = const 0 : f64
  var v2 = %3
  %4 = const 0 : f64
  var v3 = %4
  %5 = read v1
  %6 = neg %5 : f64
  var v4 = %6
  %7 = read v0
  var v5 = %7
  %8 = read v4
  v2 = %8
  %9 = read v5
  v3 = %9
  %10 = read v2
  %11 = mul %10, %10 : f64
  %12 = const 0 : i64
  store %11, a0[%12]
)");
}

TEST(Language, FunctionsTakeNumbersBesideTracedValues) {
  EXPECT_EQ(trace([](ArrayRef<float, 0> x, Scalar<bool> c) {
              Expr<float> v = x();
              x() = pow(v, 2);
              x() = costate::max(1, v);
              x() = clamp(v, 0, 1.5);
              x() = select(c, 1.0f, v);
              x() = select(~c, 1.0f, 0.0f);
              x() = cast<float>(v > 0);
            }),
            R"(kernel k(a0: array f32 0, a1: bool)
  %0 = scalar a1
  %1 = load a0[]
  %2 = const 2 : f32
  %3 = pow %1, %2 : f32
  store %3, a0[]
  %4 = const 1 : f32
  %5 = max %4, %1 : f32
  store %5, a0[]
  %6 = const 0 : f32
  %7 = const 1.5 : f32
  %8 = clamp %1, %6, %7 : f32
  store %8, a0[]
  %9 = const 1 : f32
  %10 = select %0, %9, %1 : f32
  store %10, a0[]
  %11 = not %0 : bool
  %12 = const 1 : f32
  %13 = const 0 : f32
  %14 = select %11, %12, %13 : f32
  store %14, a0[]
  %15 = const 0 : f32
  %16 = gt %1, %15 : bool
  %17 = cast %16 : f32
  store %17, a0[]
)");
}

TEST(Language, StatementsKnowTheirLine) {
  uint32_t line = std::source_location::current().line();
  auto traced = detail::trace(
      "k",
      [](ArrayRef<double, 1> x) {
        Var<double> v = x(0); // line + 4
        x(0) = v * 2;         // line + 5
        FOR (k, 0, 3) {       // line + 6
          x(k) += 1;
        }
      },
      Loc::current());
  std::vector<uint32_t> lines;
  for (const syntax::Statement &statement : traced->kernel.body)
    if (!is(statement.kind, syntax::Role::Value))
      lines.push_back(statement.loc.line - line);
  EXPECT_EQ(lines, (std::vector<uint32_t>{4, 5, 6}));
}

} // namespace
