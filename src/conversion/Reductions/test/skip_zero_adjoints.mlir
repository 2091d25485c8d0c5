// RUN: costate-opt %s --skip-zero-adjoints | FileCheck %s

// Two seeds, of which one goes through the loop; an inner loop with the same
// seed needs no branch of its own.
// CHECK-LABEL: costate.kernel @carried
// CHECK:         %[[A:.*]] = arith.cmpf une, %[[G:[^ ]*]], %{{.*}} : f64
// CHECK:         %[[B:.*]] = arith.cmpf une, %[[H:[^ ]*]], %{{.*}} : f64
// CHECK:         %[[ANY:.*]] = arith.ori %[[A]], %[[B]] : i1
// CHECK:         %[[R:.*]] = scf.if %[[ANY]] -> (f64) {
// CHECK:           %[[L:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[H]]) -> (f64)
// CHECK-NOT:         arith.cmpf une
// CHECK:             scf.for
// CHECK:           scf.yield %[[L]] : f64
// CHECK:         } else {
// CHECK:           scf.yield %{{.*}} : f64
// CHECK:         } {costate.skips_zeros}
// CHECK:         costate.atomic_add %[[R]], %arg1[
costate.kernel @carried(%x: !costate.array<f64, 1>, %x_g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %half = arith.constant 0.5 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %g = costate.load %x_g[%i] : !costate.array<f64, 1>
    %h = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %h) -> f64 : i64 {
      %f = costate.load %x[%k] : !costate.array<f64, 1>
      scf.for %l = %zero to %n step %one : i64 {
        %v = costate.strong_mul %g, %f : f64
        costate.atomic_add %v, %x_g[%l] : !costate.array<f64, 1>
      }
      %w = arith.subf %g, %a : f64
      %u = arith.mulf %w, %half : f64
      costate.atomic_add %u, %x_g[%k] : !costate.array<f64, 1>
      %c = arith.cmpf ogt, %f, %half : f64
      %next = scf.if %c -> f64 {
        %m = arith.negf %a : f64
        scf.yield %m : f64
      } else {
        scf.yield %a : f64
      }
      scf.yield %next : f64
    }
    costate.atomic_add %r, %x_g[%i] : !costate.array<f64, 1>
  }
}

// The tangent of an adjoint; either factor of a symmetric product.
// CHECK-LABEL: costate.kernel @tangent
// CHECK:         arith.cmpf une
// CHECK:         scf.if
// CHECK-NEXT:      scf.for
costate.kernel @tangent(%x: !costate.array<f64, 1>, %x_g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %x_g_t: !costate.array<f64, 1> {costate.tangent_of = 1 : i64}) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %g = costate.load %x_g[%i] : !costate.array<f64, 1>
    scf.for %k = %zero to %n step %one : i64 {
      %f = costate.load %x[%k] : !costate.array<f64, 1>
      %v = costate.strong_mul symmetric %f, %g : f64
      costate.atomic_add %v, %x_g_t[%k] : !costate.array<f64, 1>
    }
  }
}

// What is not 0 with the adjoint: a plain product, a constant, a product whose
// factor is the adjoint, a value of the loop. Effects: a store, a tape. Primals.
// Exclusive additions.
// CHECK-LABEL: costate.kernel @stays
// CHECK-NOT:     scf.if
costate.kernel @stays(%x: !costate.array<f64, 1>, %x_g: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %y: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %half = arith.constant 0.5 : f64
  %inf = arith.constant 0x7FF0000000000000 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %g = costate.load %x_g[%i] : !costate.array<f64, 1>
    scf.for %k = %zero to %n step %one : i64 {
      %f = costate.load %x[%k] : !costate.array<f64, 1>
      %v = arith.mulf %g, %f : f64
      costate.atomic_add %v, %x_g[%k] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      %v = arith.mulf %g, %inf : f64
      costate.atomic_add %v, %x_g[%k] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      %v = arith.addf %g, %half : f64
      costate.atomic_add %v, %x_g[%k] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      %f = costate.load %x[%k] : !costate.array<f64, 1>
      %v = costate.strong_mul %f, %g : f64
      costate.atomic_add %v, %x_g[%k] : !costate.array<f64, 1>
    }
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %g) -> f64 : i64 {
      %f = costate.load %x[%k] : !costate.array<f64, 1>
      costate.atomic_add %a, %x_g[%k] : !costate.array<f64, 1>
      scf.yield %f : f64
    }
    scf.for %k = %zero to %n step %one : i64 {
      costate.atomic_add %g, %x_g[%k] : !costate.array<f64, 1>
      costate.store %r, %y[%k] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      tape.push record(0) %r : f64
    }
    tape.pivot
    scf.for %k = %zero to %n step %one : i64 {
      %f = tape.pop record(0) : f64
      %v = costate.strong_mul %g, %f : f64
      costate.atomic_add %v, %x_g[%k] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      costate.atomic_add %g, %y[%k] : !costate.array<f64, 1>
    }
    scf.for %k = %zero to %n step %one : i64 {
      costate.atomic_add exclusive %g, %x_g[%i] : !costate.array<f64, 1>
    }
  }
}
