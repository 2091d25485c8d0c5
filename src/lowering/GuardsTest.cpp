/// Which loads a condition guards.

#include "lowering/LowerTest.h"

using namespace costate;

namespace {

using LowerGuards = lowering::Lower;

TEST_F(LowerGuards, ConditionsGuardLoads) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              IF ((n > 3) & (x(n) > 0) & ((n > 4) | (x(n + 1) > 0))) {
                x(0) = 0;
              }
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %true = arith.constant true
  %c4_i64 = arith.constant 4 : i64
  %false = arith.constant false
  %cst = arith.constant 0.000000e+00 : f64
  %c3_i64 = arith.constant 3 : i64
  %0 = arith.cmpi sgt, %arg1, %c3_i64 : i64
  %1 = scf.if %0 -> (i1) {
    %3 = costate.load %arg0[%arg1] : !costate.array<f64, 1>
    %4 = arith.cmpf ogt, %3, %cst : f64
    scf.yield %4 : i1
  } else {
    scf.yield %false : i1
  }
  %2 = scf.if %1 -> (i1) {
    %3 = arith.cmpi sgt, %arg1, %c4_i64 : i64
    %4 = scf.if %3 -> (i1) {
      scf.yield %true : i1
    } else {
      %5 = arith.addi %arg1, %c1_i64 : i64
      %6 = costate.load %arg0[%5] : !costate.array<f64, 1>
      %7 = arith.cmpf ogt, %6, %cst : f64
      scf.yield %7 : i1
    }
    scf.yield %4 : i1
  } else {
    scf.yield %false : i1
  }
  scf.if %2 {
    costate.store %cst, %arg0[%c0_i64] : !costate.array<f64, 1>
  }
  costate.return
}
)");
}

TEST_F(LowerGuards, OnlyWhatIsUsedElsewhereIsNotGuarded) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, ArrayRef<bool, 1> y,
                         Scalar<int64_t> n) {
              Expr<double> v = x(n);
              y(0) = (n > 3) & (v > 0);
              x(0) = v;
              Expr<bool> late = x(1) > 0;
              x(1) = 3;
              y(1) = (n > 3) & late;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: !costate.array<i1, 1>, %arg2: i64) {
  %cst = arith.constant 3.000000e+00 : f64
  %c1_i64 = arith.constant 1 : i64
  %c0_i64 = arith.constant 0 : i64
  %cst_0 = arith.constant 0.000000e+00 : f64
  %c3_i64 = arith.constant 3 : i64
  %0 = costate.load %arg0[%arg2] : !costate.array<f64, 1>
  %1 = arith.cmpi sgt, %arg2, %c3_i64 : i64
  %2 = arith.cmpf ogt, %0, %cst_0 : f64
  %3 = arith.andi %1, %2 : i1
  costate.store %3, %arg1[%c0_i64] : !costate.array<i1, 1>
  costate.store %0, %arg0[%c0_i64] : !costate.array<f64, 1>
  %4 = costate.load %arg0[%c1_i64] : !costate.array<f64, 1>
  %5 = arith.cmpf ogt, %4, %cst_0 : f64
  costate.store %cst, %arg0[%c1_i64] : !costate.array<f64, 1>
  %6 = arith.andi %1, %5 : i1
  costate.store %6, %arg1[%c1_i64] : !costate.array<i1, 1>
  costate.return
}
)");
}

TEST_F(LowerGuards, ArgumentsOfSelectAreNotGuarded) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              x(0) = select(n > 3, x(n), 0);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %c0_i64 = arith.constant 0 : i64
  %cst = arith.constant 0.000000e+00 : f64
  %c3_i64 = arith.constant 3 : i64
  %0 = arith.cmpi sgt, %arg1, %c3_i64 : i64
  %1 = costate.load %arg0[%arg1] : !costate.array<f64, 1>
  %2 = arith.select %0, %1, %cst : f64
  costate.store %2, %arg0[%c0_i64] : !costate.array<f64, 1>
  costate.return
}
)");
}

/// Compilers differ in which operand of `&` they evaluate first.
TEST_F(LowerGuards, AGuardedOperandMayComeFirst) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, ArrayRef<bool, 0> y,
                         Scalar<int64_t> n) {
              Expr<bool> right = x(n) > 0;
              Expr<bool> left = n > 3;
              y() = left & right;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: !costate.array<i1, 0>, %arg2: i64) {
  %false = arith.constant false
  %cst = arith.constant 0.000000e+00 : f64
  %c3_i64 = arith.constant 3 : i64
  %0 = arith.cmpi sgt, %arg2, %c3_i64 : i64
  %1 = scf.if %0 -> (i1) {
    %2 = costate.load %arg0[%arg2] : !costate.array<f64, 1>
    %3 = arith.cmpf ogt, %2, %cst : f64
    scf.yield %3 : i1
  } else {
    scf.yield %false : i1
  }
  costate.store %1, %arg1[] : !costate.array<i1, 0>
  costate.return
}
)");
}

} // namespace
