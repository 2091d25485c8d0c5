// RUN: costate-opt %s --differentiate-reverse | FileCheck %s

// A window of three elements becomes straight code.
// CHECK-LABEL: costate.kernel @window.grad
// CHECK-NOT:     scf.for
// CHECK:         costate.return
costate.kernel @window(%u: !costate.array<f64, 1>, %w: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  costate.range (%i) in (%n) {
    %end = arith.addi %i, %two : i64
    %s = scf.for %k = %i to %end step %one iter_args(%t = %zero) -> (f64) : i64 {
      %at = arith.addi %k, %i : i64
      %v = costate.load %u[%at] : !costate.array<f64, 1>
      %x = arith.addf %t, %v : f64
      scf.yield %x : f64
    }
    costate.store %s, %w[%i] : !costate.array<f64, 1>
  }
  costate.return
}

// Bounds of i32 that may wrap around do not say how long a loop is.
// CHECK-LABEL: costate.kernel @wraps.grad
// CHECK:         scf.for
costate.kernel @wraps(%u: !costate.array<f64, 1>, %w: !costate.array<f64, 1>, %n: i64, %m: i32) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1 : i64
  %few = arith.constant 2 : i32
  %last = arith.addi %m, %few : i32
  %low = arith.extsi %m : i32 to i64
  %high = arith.extsi %last : i32 to i64
  costate.range (%i) in (%n) {
    %s = scf.for %k = %low to %high step %one iter_args(%t = %zero) -> (f64) : i64 {
      %at = arith.addi %k, %i : i64
      %v = costate.load %u[%at] : !costate.array<f64, 1>
      %x = arith.addf %t, %v : f64
      scf.yield %x : f64
    }
    costate.store %s, %w[%i] : !costate.array<f64, 1>
  }
  costate.return
}

// Iterations with elements of their own become work items; others do not.
// CHECK-LABEL: costate.kernel @rows.grad
// CHECK:         costate.range (%{{.*}}, %{{.*}}) in
// CHECK-NOT:     scf.for
// CHECK-LABEL: costate.kernel @depends(
// CHECK-LABEL: costate.kernel @depends.grad
// CHECK:         scf.for
costate.kernel @rows(%u: !costate.array<f64, 2>, %w: !costate.array<f64, 2>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    scf.for %k = %zero to %n step %one : i64 {
      %v = costate.load %u[%i, %k] : !costate.array<f64, 2>
      %x = arith.mulf %v, %v : f64
      costate.store %x, %w[%i, %k] : !costate.array<f64, 2>
    }
  }
  costate.return
}
costate.kernel @depends(%u: !costate.array<f64, 2>, %w: !costate.array<f64, 2>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    scf.for %k = %zero to %n step %one : i64 {
      %next = arith.addi %k, %one : i64
      %v = costate.load %w[%i, %k] : !costate.array<f64, 2>
      %x = costate.load %u[%i, %k] : !costate.array<f64, 2>
      %y = arith.addf %v, %x : f64
      costate.store %y, %w[%i, %next] : !costate.array<f64, 2>
    }
  }
  costate.return
}
