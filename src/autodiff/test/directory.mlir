// RUN: costate-opt %s --differentiate-reverse=active=0,1 | FileCheck %s
// RUN: costate-opt %s --differentiate-forward=active=0,1 | FileCheck %s --check-prefix=JVP
// RUN: costate-opt %s --watch-accesses | FileCheck %s --check-prefix=WATCH

// Where a block lies is read from the directory as it is later, although the
// work item may have set it itself: no version, no atomic, and no order.
// CHECK-LABEL: costate.kernel @scatter.grad
// CHECK-NOT:     costate.version_of
// CHECK-NOT:     costate.scratch_of
// CHECK-NOT:     costate.compare_exchange
// CHECK:         %[[ROW:.*]] = costate.load %arg2[
// CHECK:         costate.load %arg6[%[[ROW]]]
// CHECK-NOT:     costate.compare_exchange
// CHECK:         costate.return
// JVP-LABEL:   costate.kernel @scatter.jvp
// JVP:           costate.compare_exchange
// WATCH-LABEL: costate.kernel @scatter
// WATCH-NOT:     costate.watched
costate.kernel @scatter(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>,
    %d: !costate.array<i64, 1> {costate.directory}, %at: !costate.array<i64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    %block = costate.load %at[%i] : !costate.array<i64, 1>
    %known = costate.load %d[%block] : !costate.array<i64, 1>
    %is_new = arith.cmpi eq, %known, %zero : i64
    scf.if %is_new {
      %old = costate.compare_exchange %n if %zero, %d[%block] : !costate.array<i64, 1>
    }
    %row = costate.load %d[%block] : !costate.array<i64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.atomic_add %w, %y[%row] : !costate.array<f64, 1>
  }
}

// What an atomic has returned of a directory is there later, too.
// CHECK-LABEL: costate.kernel @returned.grad
// CHECK-NOT:     costate.compare_exchange
// CHECK:         %[[ROW:.*]] = costate.load %arg2[
// CHECK:         costate.load %arg6[%[[ROW]]]
costate.kernel @returned(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>,
    %d: !costate.array<i64, 1> {costate.directory}, %at: !costate.array<i64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    %block = costate.load %at[%i] : !costate.array<i64, 1>
    %row = costate.compare_exchange %n if %zero, %d[%block] : !costate.array<i64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[%row] : !costate.array<f64, 1>
  }
}
