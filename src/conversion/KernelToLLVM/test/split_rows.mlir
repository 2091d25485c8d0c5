// RUN: costate-opt %s --split-rows=vector-bits=512 | FileCheck %s

// Rows of a border stay whole. In others, 8 numbers of f64 to a vector; both
// ends are in one loop, the interior comes between them. Borders have branches,
// so they may be lanes.
// CHECK-LABEL: llvm.func @row
// CHECK-SAME:    passthrough = ["costate-three-loops"]
// CHECK:         scf.if %arg4 {
// CHECK:           arith.constant -8 : i64
// CHECK:           arith.constant 7 : i64
// CHECK:           scf.for %[[SIDE:.*]] = %{{.*}} to %c2_i64 step %{{.*}} : i64 {
// CHECK:             scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i64 {
// CHECK-NOT:           costate.load
// CHECK:               costate.store %arg6, %{{.*}}[%[[K]]]
// CHECK-NEXT:        } {costate.row}
// CHECK-NEXT:        scf.if %{{.*}} {
// CHECK-NEXT:          scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i64 {
// CHECK-NEXT:            %[[E:.*]] = arith.addi %[[K]], %arg5
// CHECK-NOT:             scf.if
// CHECK:                 costate.load %{{.*}}[%[[E]]]
// CHECK:               }
// CHECK:             }
// CHECK:           }
// CHECK:         } else {
// CHECK:           scf.for %[[K:.*]] = %arg2 to %arg3 step %{{.*}} : i64 {
// CHECK:             costate.store %arg7, %{{.*}}[%[[K]]]
// CHECK-NEXT:      } {costate.row}
// CHECK-NOT:     scf.for
llvm.func @row(%base: !llvm.ptr, %n: i64, %lo: i64, %hi: i64, %outer: i1, %offset: i64, %v: f64, %w: f64) {
  %x = builtin.unrealized_conversion_cast %base, %n : !llvm.ptr, i64 to !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  scf.for %k = %lo to %hi step %one : i64 {
    %e = arith.addi %k, %offset : i64
    %low = arith.cmpi sge, %e, %one : i64
    %high = arith.cmpi slt, %e, %n : i64
    %inside = arith.andi %low, %high : i1
    scf.if %outer {
      scf.if %inside {
        %u = costate.load %x[%e] : !costate.array<f64, 1>
        costate.store %u, %x[%k] : !costate.array<f64, 1>
      } else {
        costate.store %v, %x[%k] : !costate.array<f64, 1>
      } {costate.interior}
    } else {
      costate.store %w, %x[%k] : !costate.array<f64, 1>
    } {costate.interior}
  }
  llvm.return
}
