// RUN: costate-opt %s | costate-opt | FileCheck %s
// RUN: costate-opt %s --canonicalize --cse --loop-invariant-code-motion | FileCheck %s

// Which loop undoes which prints and parses, and passes between keep it.
// CHECK-LABEL: costate.kernel @nest
costate.kernel @nest(%x: !costate.array<f64, 1>, %dx: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f64
  %f2 = arith.constant 2.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // CHECK: scf.for
    %w = scf.for %k = %c0 to %n step %c1 iter_args(%u = %v) -> f64 : i64 {
      // CHECK: scf.while
      %e, %m, %same = scf.while (%t = %u, %j = %c0, %s = %f2) : (f64, i64, f64) -> (f64, i64, f64) {
        %more = arith.cmpf olt, %t, %f2 : f64
        scf.condition(%more) %t, %j, %s : f64, i64, f64
      } do {
      ^bb0(%t: f64, %j: i64, %s: f64):
        tape.push record(0) %t : f64
        %square = arith.mulf %t, %s : f64
        %next = arith.addi %j, %c1 : i64
        scf.yield %square, %next, %s : f64, i64, f64
      // CHECK: } attributes {tape.pair = 1 : i64}
      } attributes {tape.pair = 1 : i64}
      tape.push record(1) %m : i64
      scf.yield %e : f64
    // CHECK: {tape.pair = 0 : i64}
    } {tape.pair = 0 : i64}
    // CHECK: tape.pivot
    tape.pivot
    %dw = scf.for %k = %c0 to %n step %c1 iter_args(%du = %f1) -> f64 : i64 {
      %m = tape.pop record(1) : i64
      %d = scf.for %j = %c0 to %m step %c1 iter_args(%dt = %du) -> f64 : i64 {
        %t = tape.pop record(0) : f64
        %p = costate.strong_mul %dt, %t : f64
        scf.yield %p : f64
      // CHECK: {tape.pair = 1 : i64}
      } {tape.pair = 1 : i64}
      scf.yield %d : f64
    // CHECK: {tape.pair = 0 : i64}
    } {tape.pair = 0 : i64}
    costate.atomic_add %dw, %dx[%i] : !costate.array<f64, 1>
  }
}

// The number of a loop whose partner is gone says nothing.
// CHECK-LABEL: costate.kernel @half
costate.kernel @half(%n: i64, %v: f64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
    tape.push record(0) %v : f64
  } {tape.pair = 0 : i64}
}
