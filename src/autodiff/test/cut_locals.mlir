// RUN: costate-opt %s --differentiate-reverse | FileCheck %s

// What is saved of several private arrays comes back in the opposite order.
// CHECK-LABEL: costate.kernel @two.grad
// CHECK:         tape.push record(1)
// CHECK:         tape.push record(0)
// CHECK:         tape.pop record(0)
// CHECK:         tape.pop record(1)
costate.kernel @two(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 2>
    %b = costate.local : !costate.local<f64, 4>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %v, %a[%zero] : !costate.local<f64, 2>
    costate.local_store %v, %b[%one] : !costate.local<f64, 4>
    %r = scf.for %k = %zero to %n step %one iter_args(%c = %v) -> (f64) : i64 {
      %p = costate.local_load %a[%zero] : !costate.local<f64, 2>
      %q = costate.local_load %b[%one] : !costate.local<f64, 4>
      %s = arith.mulf %p, %c : f64
      %t = arith.mulf %q, %s : f64
      scf.yield %t : f64
    } {costate.checkpoints = 2 : i64}
    costate.atomic_add exclusive %r, %x[%i] : !costate.array<f64, 1>
  }
}
