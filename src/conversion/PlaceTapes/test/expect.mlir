// RUN: costate-opt %s --place-tapes --canonicalize --cse | FileCheck %s

// The host knows how many iterations there are, and so what tapes need.
// CHECK-LABEL: costate.kernel @known
// CHECK:         %[[T:.*]] = costate.trip_count
// CHECK:         %[[ITERATIONS:.*]] = arith.trunci
// CHECK:         tape.min_rows %[[ITERATIONS]]
// CHECK:         tape.expect
// CHECK-NEXT:    costate.range
// CHECK:         tape.report
costate.kernel @known(%g: !costate.array<f32, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %g[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %t = costate.trip_count %zero to %n by %one
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %f1) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %m = costate.strong_mul %h, %a : f32
      scf.yield %m : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}
