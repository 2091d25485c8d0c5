// RUN: costate-opt %s --differentiate-reverse | FileCheck %s

// RULE: ranges
// The serial value of an iteration is on the serial tape; its adjoint is the sum that
// the range returns.
// CHECK-LABEL: costate.kernel @driven.grad(
// CHECK: scf.for
// CHECK-NOT: costate.range
// CHECK: tape.push
// CHECK: tape.pivot
// CHECK: scf.for %[[T:.*]] = {{.*}} iter_args
// CHECK: %[[S:[0-9]+]] = tape.pop
// CHECK: costate.range {{.*}} -> f64
// CHECK: costate.strong_mul %{{.*}}, %[[S]]
costate.kernel @driven(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 2>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %init = costate.load %x[%zero] : !costate.array<f64, 1>
  %end = scf.for %t = %zero to %n step %one iter_args(%s = %init) -> (f64) : i64 {
    costate.range (%i) in (%n) {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = arith.mulf %v, %s : f64
      costate.store %w, %y[%t, %i] : !costate.array<f64, 2>
    }
    %next = costate.sin %s : f64
    scf.yield %next : f64
  }
}
