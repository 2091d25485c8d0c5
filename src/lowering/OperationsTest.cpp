/// Arguments, operations and casts as kernel IR.

#include "lowering/LowerTest.h"

using namespace costate;

namespace {

using LowerOperations = lowering::Lower;

TEST_F(LowerOperations, ScalarsAndArraysBecomeArguments) {
  EXPECT_EQ(lower([](ArrayRef<unsigned, 2> a, ArrayRef<bool, 0> b,
                     Scalar<uint64_t> s) {
              a(0, 1) = cast<unsigned>(s);
              b() = a(1, 0) < 2;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<ui32, 2>, %arg1: !costate.array<i1, 0>, %arg2: i64) {
  %0 = arith.trunci %arg2 : i64 to i32
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  costate.store %0, %arg0[%c0_i64, %c1_i64] : !costate.array<ui32, 2>
  %c1_i64_0 = arith.constant 1 : i64
  %c0_i64_1 = arith.constant 0 : i64
  %1 = costate.load %arg0[%c1_i64_0, %c0_i64_1] : !costate.array<ui32, 2>
  %c2_i32 = arith.constant 2 : i32
  %2 = arith.cmpi ult, %1, %c2_i32 : i32
  costate.store %2, %arg1[] : !costate.array<i1, 0>
  costate.return
}
)");
}

/// Floats select, so that a bound has no derivative where x is on it.
TEST_F(LowerOperations, ClampSelectsAmongFloats) {
  EXPECT_EQ(lower([](ArrayRef<double, 0> a, ArrayRef<unsigned, 0> b,
                     Scalar<double> x, Scalar<unsigned> u) {
              a() = clamp(x, 1, 2);
              b() = clamp(u, 1, 2);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 0>, %arg1: !costate.array<ui32, 0>, %arg2: f64, %arg3: i32) {
  %cst = arith.constant 1.000000e+00 : f64
  %cst_0 = arith.constant 2.000000e+00 : f64
  %0 = arith.cmpf olt, %arg2, %cst : f64
  %1 = arith.cmpf uno, %arg2, %arg2 : f64
  %2 = arith.ori %0, %1 : i1
  %3 = arith.select %2, %cst, %arg2 : f64
  %4 = arith.cmpf ogt, %3, %cst_0 : f64
  %5 = arith.cmpf uno, %3, %3 : f64
  %6 = arith.ori %4, %5 : i1
  %7 = arith.select %6, %cst_0, %3 : f64
  costate.store %7, %arg0[] : !costate.array<f64, 0>
  %c1_i32 = arith.constant 1 : i32
  %c2_i32 = arith.constant 2 : i32
  %8 = arith.maxui %arg3, %c1_i32 : i32
  %9 = arith.minui %8, %c2_i32 : i32
  costate.store %9, %arg1[] : !costate.array<ui32, 0>
  costate.return
}
)");
}

TEST_F(LowerOperations, UnsignedIntegersUseUnsignedOperations) {
  EXPECT_EQ(lower([](ArrayRef<unsigned, 0> a, Scalar<unsigned> x,
                     Scalar<unsigned> y) {
              Expr<unsigned> u = x / y + x % y + (x << y) + (x >> y);
              a() =
                  costate::min(u, y) + cast<unsigned>(cast<double>(x)) + abs(y);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<ui32, 0>, %arg1: i32, %arg2: i32) {
  %0 = costate.div unsigned %arg1, %arg2 : i32
  %1 = costate.rem unsigned %arg1, %arg2 : i32
  %2 = arith.addi %0, %1 : i32
  %3 = costate.shl unsigned %arg1, %arg2 : i32
  %4 = arith.addi %2, %3 : i32
  %5 = costate.shr unsigned %arg1, %arg2 : i32
  %6 = arith.addi %4, %5 : i32
  %7 = arith.minui %6, %arg2 : i32
  %8 = arith.uitofp %arg1 : i32 to f64
  %9 = costate.to_int unsigned %8 : f64 to i32
  %10 = arith.addi %7, %9 : i32
  %11 = arith.addi %10, %arg2 : i32
  costate.store %11, %arg0[] : !costate.array<ui32, 0>
  costate.return
}
)");
}

TEST_F(LowerOperations, SignedIntegersUseTotalOperations) {
  EXPECT_EQ(lower([](ArrayRef<int, 0> a, Scalar<int> x, Scalar<int> y) {
              Expr<int> u = x / y + x % y + (x << y) + (x >> y);
              a() = costate::max(u, ~y) + cast<int>(cast<float>(x)) - abs(-y);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<i32, 0>, %arg1: i32, %arg2: i32) {
  %0 = costate.div %arg1, %arg2 : i32
  %1 = costate.rem %arg1, %arg2 : i32
  %2 = arith.addi %0, %1 : i32
  %3 = costate.shl %arg1, %arg2 : i32
  %4 = arith.addi %2, %3 : i32
  %5 = costate.shr %arg1, %arg2 : i32
  %6 = arith.addi %4, %5 : i32
  %c-1_i32 = arith.constant -1 : i32
  %7 = arith.xori %arg2, %c-1_i32 : i32
  %8 = arith.maxsi %6, %7 : i32
  %9 = arith.sitofp %arg1 : i32 to f32
  %10 = costate.to_int %9 : f32 to i32
  %11 = arith.addi %8, %10 : i32
  %c0_i32 = arith.constant 0 : i32
  %12 = arith.subi %c0_i32, %arg2 : i32
  %13 = math.absi %12 : i32
  %14 = arith.subi %11, %13 : i32
  costate.store %14, %arg0[] : !costate.array<i32, 0>
  costate.return
}
)");
}

TEST_F(LowerOperations, NarrowNumbersAreMadeWhereTheyMayEnd) {
  EXPECT_EQ(lower([](ArrayRef<int8_t, 0> a, ArrayRef<f16, 0> h,
                     Scalar<int8_t> x, Scalar<f16> s) {
              a() = (x << x) & x;
              h() = costate::max(s * s, s);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<i8, 0>, %arg1: !costate.array<f16, 0>, %arg2: i32, %arg3: f32) {
  %c7_i32 = arith.constant 7 : i32
  %0 = arith.andi %arg2, %c7_i32 : i32
  %1 = costate.shl %arg2, %0 : i32
  %2 = costate.narrow %1 to i8 : i32
  %3 = arith.andi %2, %arg2 : i32
  costate.store %3, %arg0[] : !costate.array<i8, 0>
  %4 = arith.mulf %arg3, %arg3 : f32
  %5 = costate.narrow %4 to f16 : f32
  %6 = arith.maxnumf %5, %arg3 : f32
  costate.store %6, %arg1[] : !costate.array<f16, 0>
  costate.return
}
)");
}

TEST_F(LowerOperations, CastsKeepWhatTheyCan) {
  EXPECT_EQ(lower([](ArrayRef<bool, 1> b, ArrayRef<double, 0> d,
                     Scalar<float> f, Scalar<int> i, Scalar<unsigned> u) {
              b(0) = cast<bool>(f);
              b(1) = cast<bool>(i);
              d() = cast<double>(f) + cast<double>(u) +
                    cast<double>(cast<bool>(i));
              b(2) = cast<int>(cast<int64_t>(u)) != cast<int>(u);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<i1, 1>, %arg1: !costate.array<f64, 0>, %arg2: f32, %arg3: i32, %arg4: i32) {
  %cst = arith.constant 0.000000e+00 : f32
  %0 = arith.cmpf une, %arg2, %cst : f32
  %c0_i64 = arith.constant 0 : i64
  costate.store %0, %arg0[%c0_i64] : !costate.array<i1, 1>
  %c0_i32 = arith.constant 0 : i32
  %1 = arith.cmpi ne, %arg3, %c0_i32 : i32
  %c1_i64 = arith.constant 1 : i64
  costate.store %1, %arg0[%c1_i64] : !costate.array<i1, 1>
  %2 = arith.extf %arg2 : f32 to f64
  %3 = arith.uitofp %arg4 : i32 to f64
  %4 = arith.addf %2, %3 : f64
  %c0_i32_0 = arith.constant 0 : i32
  %5 = arith.cmpi ne, %arg3, %c0_i32_0 : i32
  %6 = arith.uitofp %5 : i1 to f64
  %7 = arith.addf %4, %6 : f64
  costate.store %7, %arg1[] : !costate.array<f64, 0>
  %8 = arith.extui %arg4 : i32 to i64
  %9 = arith.trunci %8 : i64 to i32
  %10 = arith.cmpi ne, %9, %arg4 : i32
  %c2_i64 = arith.constant 2 : i64
  costate.store %10, %arg0[%c2_i64] : !costate.array<i1, 1>
  costate.return
}
)");
}

TEST_F(LowerOperations, FloatsHaveTheirFunctions) {
  EXPECT_EQ(
      lower([](ArrayRef<double, 0> a, Scalar<double> x, Scalar<double> y) {
        a() = costate::min(x, y) % costate::max(x, y);
        a() = hypot(x, pow(y, 2)) + round(fma(x, y, atan2(x, -y)));
        a() = select(x != y, erf(x), expm1(y));
      }),
      R"(
costate.kernel @k(%arg0: !costate.array<f64, 0>, %arg1: f64, %arg2: f64) {
  %0 = arith.minnumf %arg1, %arg2 : f64
  %1 = arith.maxnumf %arg1, %arg2 : f64
  %2 = arith.remf %0, %1 : f64
  costate.store %2, %arg0[] : !costate.array<f64, 0>
  %cst = arith.constant 2.000000e+00 : f64
  %3 = costate.powf %arg2, %cst : f64
  %4 = costate.hypot %arg1, %3 : f64
  %5 = arith.negf %arg2 : f64
  %6 = costate.atan2 %arg1, %5 : f64
  %7 = math.fma %arg1, %arg2, %6 : f64
  %8 = math.round %7 : f64
  %9 = arith.addf %4, %8 : f64
  costate.store %9, %arg0[] : !costate.array<f64, 0>
  %10 = arith.cmpf une, %arg1, %arg2 : f64
  %11 = costate.erf %arg1 : f64
  %12 = costate.expm1 %arg2 : f64
  %13 = arith.select %10, %11, %12 : f64
  costate.store %13, %arg0[] : !costate.array<f64, 0>
  costate.return
}
)");
}

} // namespace
