// RUN: costate-opt %s --differentiate-forward="active=0,1" --canonicalize --cse | FileCheck %s

// Tangents are carried beside their primals; what does not vary has none.
// CHECK-LABEL: costate.kernel @iterate.jvp
// CHECK-SAME:    %[[DX:[a-z0-9]+]]: {{.*}}tangent_of = 0{{.*}}, %[[DY:[a-z0-9]+]]: {{.*}}tangent_of = 1
// CHECK:         %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[DA:.*]] = %{{.*}}) -> (f64, f64, f64)
// CHECK:           %[[COS:.*]] = costate.cos %[[A]]
// CHECK:           costate.strong_mul %[[DA]], %[[COS]]
// CHECK:         costate.store %[[R]]#0
// CHECK:         costate.store %[[R]]#2, %[[DY]]
costate.kernel @iterate(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r, %s = scf.for %k = %zero to %n step %one iter_args(%a = %v, %b = %half) -> (f64, f64) : i64 {
      %q = costate.sin %a : f64
      %w = arith.mulf %b, %half : f64
      %z = arith.addf %q, %w : f64
      scf.yield %z, %w : f64, f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
    costate.store %s, %c[%i] : !costate.array<f64, 1>
  }
}

// RULE: stores-clear
// `=` overwrites the tangent, `+=` adds to it; constants overwrite with 0.
// CHECK-LABEL: costate.kernel @writes.jvp
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         costate.store %{{.*}}, %{{.*}}[%[[I:.*]]]
// CHECK:         costate.store %[[ZERO]]
// CHECK:         costate.atomic_add
// CHECK:         costate.atomic_add
costate.kernel @writes(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %half, %y[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[%i] : !costate.array<f64, 1>
  }
}
