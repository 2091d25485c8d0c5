/// Variables and control flow as kernel IR.

#include "lowering/LowerTest.h"

#include "costate/local.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace costate;

namespace {

using LowerControl = lowering::Lower;

TEST_F(LowerControl, PrivateArraysWithKnownIndicesAreVariables) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<bool> c) {
              Local<double, 2> a;
              a[0] = x(0);
              IF (c) {
                a[1] = a[0] * a[0];
              }
              x(1) = a[1];
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i1) {
  %c1_i64 = arith.constant 1 : i64
  %cst = arith.constant 0.000000e+00 : f64
  %c0_i64 = arith.constant 0 : i64
  %0 = costate.load %arg0[%c0_i64] : !costate.array<f64, 1>
  %1 = scf.if %arg1 -> (f64) {
    %2 = arith.mulf %0, %0 : f64
    scf.yield %2 : f64
  } else {
    scf.yield %cst : f64
  }
  costate.store %1, %arg0[%c1_i64] : !costate.array<f64, 1>
  costate.return
}
)");
}

TEST_F(LowerControl, PrivateArraysAreMemory) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> j) {
              Local<double, 2> a;
              a[0] = x(0);
              x(1) = a[j];
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %c1_i64 = arith.constant 1 : i64
  %c0_i64 = arith.constant 0 : i64
  %0 = costate.local : !costate.local<f64, 2>
  %1 = costate.load %arg0[%c0_i64] : !costate.array<f64, 1>
  costate.local_store %1, %0[%c0_i64] : !costate.local<f64, 2>
  %2 = costate.local_load %0[%arg1] : !costate.local<f64, 2>
  costate.store %2, %arg0[%c1_i64] : !costate.array<f64, 1>
  costate.return
}
)");
}

TEST_F(LowerControl, AVariableIsAResultOnlyWhereItIsAssigned) {
  EXPECT_EQ(lower([](ArrayRef<double, 1> x, Scalar<bool> c) {
              Var<double> a = x(0), b = x(1);
              IF (c) {
                Var<double> local = a;
                local += 1;
                b = local;
              }
              x(0) = a * b;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i1) {
  %c0_i64 = arith.constant 0 : i64
  %0 = costate.load %arg0[%c0_i64] : !costate.array<f64, 1>
  %c1_i64 = arith.constant 1 : i64
  %1 = costate.load %arg0[%c1_i64] : !costate.array<f64, 1>
  %2 = scf.if %arg1 -> (f64) {
    %cst = arith.constant 1.000000e+00 : f64
    %4 = arith.addf %0, %cst : f64
    scf.yield %4 : f64
  } else {
    scf.yield %1 : f64
  }
  %3 = arith.mulf %0, %2 : f64
  %c0_i64_0 = arith.constant 0 : i64
  costate.store %3, %arg0[%c0_i64_0] : !costate.array<f64, 1>
  costate.return
}
)");
}

TEST_F(LowerControl, ALoopCountsItsIterationsFromZero) {
  EXPECT_EQ(lower([](ArrayRef<double, 0> x, Scalar<int64_t> lo,
                     Scalar<int64_t> hi, Scalar<int64_t> step) {
              Var<double> s = 0;
              FOR (i, lo, hi, step) {
                s += cast<double>(i);
              }
              x() = s;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 0>, %arg1: i64, %arg2: i64, %arg3: i64) {
  %cst = arith.constant 0.000000e+00 : f64
  %0 = costate.trip_count %arg1 to %arg2 by %arg3
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %1 = scf.for %arg4 = %c0_i64 to %0 step %c1_i64 iter_args(%arg5 = %cst) -> (f64)  : i64 {
    %2 = arith.muli %arg4, %arg3 : i64
    %3 = arith.addi %2, %arg1 : i64
    %4 = arith.sitofp %3 : i64 to f64
    %5 = arith.addf %arg5, %4 : f64
    scf.yield %5 : f64
  }
  costate.store %1, %arg0[] : !costate.array<f64, 0>
  costate.return
}
)");
}

// RULE: loops
TEST_F(LowerControl, ContinueKeepsTheFor) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              Var<double> s = 0;
              FOR (i, 0, n) {
                IF (x(i) > 3) {
                  CONTINUE;
                }
                s += x(i);
              }
              x(0) = s;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %cst = arith.constant 3.000000e+00 : f64
  %cst_0 = arith.constant 0.000000e+00 : f64
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %0 = costate.trip_count %c0_i64 to %arg1 by %c1_i64
  %1 = scf.for %arg2 = %c0_i64 to %0 step %c1_i64 iter_args(%arg3 = %cst_0) -> (f64)  : i64 {
    %2 = costate.load %arg0[%arg2] : !costate.array<f64, 1>
    %3 = arith.cmpf ogt, %2, %cst : f64
    %4 = scf.if %3 -> (f64) {
      scf.yield %arg3 : f64
    } else {
      %5 = costate.load %arg0[%arg2] : !costate.array<f64, 1>
      %6 = arith.addf %arg3, %5 : f64
      scf.yield %6 : f64
    }
    scf.yield %4 : f64
  }
  costate.store %1, %arg0[%c0_i64] : !costate.array<f64, 1>
  costate.return
}
)");
}

// RULE: loops
TEST_F(LowerControl, BreakMakesAWhileWithItsOwnCounter) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              Var<double> s = 0;
              FOR (i, 5, n) {
                IF (x(i) > 3) {
                  BREAK;
                }
                s += x(i);
              }
              x(0) = s;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %cst = arith.constant 3.000000e+00 : f64
  %true = arith.constant true
  %c0_i64 = arith.constant 0 : i64
  %false = arith.constant false
  %cst_0 = arith.constant 0.000000e+00 : f64
  %c5_i64 = arith.constant 5 : i64
  %c1_i64 = arith.constant 1 : i64
  %0 = costate.trip_count %c5_i64 to %arg1 by %c1_i64
  %1:2 = scf.while (%arg2 = %c0_i64, %arg3 = %cst_0, %arg4 = %false) : (i64, f64, i1) -> (i64, f64) {
    %2 = arith.cmpi ult, %arg2, %0 : i64
    %3 = arith.xori %arg4, %true : i1
    %4 = arith.andi %3, %2 : i1
    scf.condition(%4) %arg2, %arg3 : i64, f64
  } do {
  ^bb0(%arg2: i64, %arg3: f64):
    %2 = arith.addi %arg2, %c5_i64 : i64
    %3 = costate.load %arg0[%2] : !costate.array<f64, 1>
    %4 = arith.cmpf ogt, %3, %cst : f64
    %5 = scf.if %4 -> (f64) {
      scf.yield %arg3 : f64
    } else {
      %7 = costate.load %arg0[%2] : !costate.array<f64, 1>
      %8 = arith.addf %arg3, %7 : f64
      scf.yield %8 : f64
    }
    %6 = arith.addi %arg2, %c1_i64 : i64
    scf.yield %6, %5, %4 : i64, f64, i1
  }
  costate.store %1#1, %arg0[%c0_i64] : !costate.array<f64, 1>
  costate.return
}
)");
}

// RULE: loops
TEST_F(LowerControl, AWhileThatWasLeftDoesNotEvaluateItsCondition) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x) {
              Var<int64_t> i = 0;
              WHILE (x(i) > 0) {
                i += 1;
                IF (i > 7) {
                  BREAK;
                }
              }
              x(0) = cast<double>(i);
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>) {
  %c7_i64 = arith.constant 7 : i64
  %c1_i64 = arith.constant 1 : i64
  %cst = arith.constant 0.000000e+00 : f64
  %c0_i64 = arith.constant 0 : i64
  %false = arith.constant false
  %0 = scf.while (%arg1 = %c0_i64, %arg2 = %false) : (i64, i1) -> i64 {
    %2 = scf.if %arg2 -> (i1) {
      scf.yield %false : i1
    } else {
      %3 = costate.load %arg0[%arg1] : !costate.array<f64, 1>
      %4 = arith.cmpf ogt, %3, %cst : f64
      scf.yield %4 : i1
    }
    scf.condition(%2) %arg1 : i64
  } do {
  ^bb0(%arg1: i64):
    %2 = arith.addi %arg1, %c1_i64 : i64
    %3 = arith.cmpi sgt, %2, %c7_i64 : i64
    scf.yield %2, %3 : i64, i1
  }
  %1 = arith.sitofp %0 : i64 to f64
  costate.store %1, %arg0[%c0_i64] : !costate.array<f64, 1>
  costate.return
}
)");
}

TEST_F(LowerControl, AWhileWithoutJumpsHasNoFlags) {
  EXPECT_EQ(canonical([](ArrayRef<double, 0> x) {
              Var<double> v = x();
              WHILE (v > 1) {
                v *= 0.5;
              }
              x() = v;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 0>) {
  %cst = arith.constant 5.000000e-01 : f64
  %cst_0 = arith.constant 1.000000e+00 : f64
  %0 = costate.load %arg0[] : !costate.array<f64, 0>
  %1 = scf.while (%arg1 = %0) : (f64) -> f64 {
    %2 = arith.cmpf ogt, %arg1, %cst_0 : f64
    scf.condition(%2) %arg1 : f64
  } do {
  ^bb0(%arg1: f64):
    %2 = arith.mulf %arg1, %cst : f64
    scf.yield %2 : f64
  }
  costate.store %1, %arg0[] : !costate.array<f64, 0>
  costate.return
}
)");
}

// RULE: loops
TEST_F(LowerControl, ReturnLeavesAllLoopsOfTheWorkItem) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              parallel(n, [&](Index i) {
                FOR (j, 0, n) {
                  FOR (k, 0, n) {
                    IF (x(k) > 3) {
                      RETURN;
                    }
                  }
                }
                x(i) = 1;
              });
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %cst = arith.constant 1.000000e+00 : f64
  %cst_0 = arith.constant 3.000000e+00 : f64
  %true = arith.constant true
  %c1_i64 = arith.constant 1 : i64
  %c0_i64 = arith.constant 0 : i64
  %false = arith.constant false
  costate.range (%arg2) in (%arg1) {
    %0 = costate.trip_count %c0_i64 to %arg1 by %c1_i64
    %1:2 = scf.while (%arg3 = %c0_i64, %arg4 = %false) : (i64, i1) -> (i64, i1) {
      %3 = arith.cmpi ult, %arg3, %0 : i64
      %4 = arith.xori %arg4, %true : i1
      %5 = arith.andi %4, %3 : i1
      scf.condition(%5) %arg3, %arg4 : i64, i1
    } do {
    ^bb0(%arg3: i64, %arg4: i1):
      %3:2 = scf.while (%arg5 = %c0_i64, %arg6 = %false) : (i64, i1) -> (i64, i1) {
        %5 = arith.cmpi ult, %arg5, %0 : i64
        %6 = arith.xori %arg6, %true : i1
        %7 = arith.andi %6, %5 : i1
        scf.condition(%7) %arg5, %arg6 : i64, i1
      } do {
      ^bb0(%arg5: i64, %arg6: i1):
        %5 = costate.load %arg0[%arg5] : !costate.array<f64, 1>
        %6 = arith.cmpf ogt, %5, %cst_0 : f64
        %7 = arith.addi %arg5, %c1_i64 : i64
        scf.yield %7, %6 : i64, i1
      }
      %4 = arith.addi %arg3, %c1_i64 : i64
      scf.yield %4, %3#1 : i64, i1
    }
    %2 = arith.xori %1#1, %true : i1
    scf.if %2 {
      costate.store %cst, %arg0[%arg2] : !costate.array<f64, 1>
    }
  }
  costate.return
}
)");
}

TEST_F(LowerControl, StatementsAfterAJumpAreDropped) {
  EXPECT_EQ(lower([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              FOR (i, 0, n) {
                CONTINUE;
                x(i) = 1;
              }
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %0 = costate.trip_count %c0_i64 to %arg1 by %c1_i64
  %c0_i64_0 = arith.constant 0 : i64
  %c1_i64_1 = arith.constant 1 : i64
  scf.for %arg2 = %c0_i64_0 to %0 step %c1_i64_1  : i64 {
    %false = arith.constant false
    %true = arith.constant true
  }
  costate.return
}
)");
}

TEST_F(LowerControl, ASerialReturnEmptiesLaterRanges) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x) {
              IF (x(0) > 0) {
                RETURN;
              }
              Expr<double> a = x(1);
              parallel(x.size(), [&](Index i) { x(i) = a; });
              IF (x(2) > 0) {
                RETURN;
              }
              Var<double> b = x(3);
              parallel(7, [&](Index i) { x(i) = b; });
              x(0) = 1;
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>) {
  %true = arith.constant true
  %cst = arith.constant 1.000000e+00 : f64
  %c7_i64 = arith.constant 7 : i64
  %c3_i64 = arith.constant 3 : i64
  %c2_i64 = arith.constant 2 : i64
  %c1_i64 = arith.constant 1 : i64
  %cst_0 = arith.constant 0.000000e+00 : f64
  %c0_i64 = arith.constant 0 : i64
  %0 = costate.load %arg0[%c0_i64] : !costate.array<f64, 1>
  %1 = arith.cmpf ogt, %0, %cst_0 : f64
  %2:2 = scf.if %1 -> (f64, i64) {
    scf.yield %cst_0, %c0_i64 : f64, i64
  } else {
    %7 = costate.load %arg0[%c1_i64] : !costate.array<f64, 1>
    %8 = costate.extent %arg0[0] : !costate.array<f64, 1>
    scf.yield %7, %8 : f64, i64
  }
  %3 = arith.select %1, %c0_i64, %2#1 : i64
  costate.range (%arg1) in (%3) {
    costate.store %2#0, %arg0[%arg1] : !costate.array<f64, 1>
  }
  %4 = scf.if %1 -> (i1) {
    scf.yield %true : i1
  } else {
    %7 = costate.load %arg0[%c2_i64] : !costate.array<f64, 1>
    %8 = arith.cmpf ogt, %7, %cst_0 : f64
    scf.yield %8 : i1
  }
  %5 = scf.if %4 -> (f64) {
    scf.yield %cst_0 : f64
  } else {
    %7 = costate.load %arg0[%c3_i64] : !costate.array<f64, 1>
    scf.yield %7 : f64
  }
  %6 = arith.select %4, %c0_i64, %c7_i64 : i64
  costate.range (%arg1) in (%6) {
    costate.store %5, %arg0[%arg1] : !costate.array<f64, 1>
  }
  scf.if %4 {
  } else {
    costate.store %cst, %arg0[%c0_i64] : !costate.array<f64, 1>
  }
  costate.return
}
)");
}

// RULE: ranges
TEST_F(LowerControl, RangesStandInSerialLoops) {
  EXPECT_EQ(canonical([](ArrayRef<double, 1> x, Scalar<int64_t> n) {
              FOR (t, 0, n) {
                parallel({n, t}, [&](Index i, Index j) { x(i + j) += 1; });
                IF (x(t) > 3) {
                  RETURN;
                }
              }
            }),
            R"(
costate.kernel @k(%arg0: !costate.array<f64, 1>, %arg1: i64) {
  %cst = arith.constant 3.000000e+00 : f64
  %cst_0 = arith.constant 1.000000e+00 : f64
  %true = arith.constant true
  %false = arith.constant false
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %0 = costate.trip_count %c0_i64 to %arg1 by %c1_i64
  %1 = scf.while (%arg2 = %c0_i64, %arg3 = %false) : (i64, i1) -> i64 {
    %2 = arith.cmpi ult, %arg2, %0 : i64
    %3 = arith.xori %arg3, %true : i1
    %4 = arith.andi %3, %2 : i1
    scf.condition(%4) %arg2 : i64
  } do {
  ^bb0(%arg2: i64):
    costate.range (%arg3, %arg4) in (%arg1, %arg2) {
      %5 = arith.addi %arg3, %arg4 : i64
      costate.atomic_add %cst_0, %arg0[%5] : !costate.array<f64, 1>
    }
    %2 = costate.load %arg0[%arg2] : !costate.array<f64, 1>
    %3 = arith.cmpf ogt, %2, %cst : f64
    %4 = arith.addi %arg2, %c1_i64 : i64
    scf.yield %4, %3 : i64, i1
  }
  costate.return
}
)");
}

TEST_F(LowerControl, EveryOpHasTheLineOfItsStatement) {
  uint32_t loop = 0;
  lower([&](ArrayRef<double, 1> x) {
    loop = Loc::current().line + 1;
    FOR (i, x.size(), 0, -1) { // the loop
      x(i) = cast<double>(i);
    }
  });
  std::set<uint32_t> lines;
  module->getBody()->front().walk([&](mlir::Operation *op) {
    if (mlir::isa<ir::KernelOp, ir::ReturnOp>(op))
      return;
    auto place = mlir::cast<mlir::FileLineColLoc>(op->getLoc());
    EXPECT_TRUE(place.getFilename().getValue().ends_with("Test.cpp"));
    lines.insert(place.getLine());
  });
  EXPECT_EQ(lines, (std::set<uint32_t>{loop, loop + 1}));
}

TEST_F(LowerControl, NestsMayBeDeep) {
  lower([](ArrayRef<double, 1> x) {
    Var<double> s = 0;
    std::function<void(int)> level = [&](int depth) {
      if (depth == 0)
        return;
      FOR (i, 0, 2) {
        IF (x(i) > depth) {
          CONTINUE;
        }
        level(depth - 1);
        s += 1;
      }
    };
    level(200);
    x(0) = s;
  });
  int loops = 0;
  module->walk([&](mlir::scf::ForOp) { ++loops; });
  EXPECT_EQ(loops, 200);
}

} // namespace
