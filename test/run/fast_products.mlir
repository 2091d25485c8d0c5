// RUN: costate-run %s --emit ptx --fast-math | FileCheck %s

// Constant factors stay in their order: together, of iterations that are
// unrolled, these would be inf.

// CHECK-NOT: 0d7FF0000000000000
// CHECK:     mul.{{(rn.)?}}f64 %{{.*}}, 0d4A511B0EC57E649A;
// CHECK-NOT: 0d7FF0000000000000
costate.kernel @grow(%x: !costate.array<f64, 1>, %n: i64) {
  %a = arith.constant 1.0e50 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%w = %v) -> f64 : i64 {
      %s = arith.mulf %w, %a : f64
      scf.yield %s : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
}
