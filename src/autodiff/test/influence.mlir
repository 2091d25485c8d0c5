// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s

// The error that ends an iteration has no adjoint: nothing of it is saved, and
// nothing is added to the adjoint of what it comes from.
// CHECK-LABEL: costate.kernel @error.grad
// CHECK:         scf.while
// CHECK:           %[[C:.*]] = costate.cos
// CHECK:           costate.exp
// CHECK:           tape.push record({{[0-9]+}}) %{{.*}} : f64
// CHECK-NEXT:      scf.yield
// CHECK:         tape.pivot
// CHECK:         scf.for {{.*}} iter_args(%[[G:.*]] = %{{.*}}) -> (f64)
// CHECK-NEXT:      tape.pop record({{[0-9]+}}) : f64
// CHECK-NOT:       arith.addf
// CHECK:           scf.yield
costate.kernel @error(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %eps = arith.constant 1.0e-12 : f64
  %one = arith.constant 1.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r:2 = scf.while (%a = %v, %err = %one) : (f64, f64) -> (f64, f64) {
      %c = arith.cmpf ogt, %err, %eps : f64
      scf.condition(%c) %a, %err : f64, f64
    } do {
    ^bb0(%a: f64, %err: f64):
      %b = costate.cos %a : f64
      %d = arith.subf %b, %a : f64
      %s = costate.exp %a : f64
      %next = arith.mulf %d, %s : f64
      scf.yield %b, %next : f64, f64
    }
    costate.store %r#0, %y[%i] : !costate.array<f64, 1>
  }
}

// A product that only a condition looks at: the reverse loop sums up what the
// other value is made of, and nothing else.
// CHECK-LABEL: costate.kernel @weight.grad
// CHECK:         scf.for
// CHECK:           tape.push record({{[0-9]+}}) %{{.*}} : i1
// CHECK:         tape.pivot
// CHECK:         scf.for %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (f64)  : i64 {
// CHECK-NEXT:      %[[C:.*]] = tape.pop record({{[0-9]+}}) : i1
// CHECK-NEXT:      %[[G:.*]] = arith.select %[[C]]
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[S]], %[[G]]
// CHECK-NEXT:      scf.yield %[[T]]
costate.kernel @weight(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c9 = arith.constant 9 : i64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r:2 = scf.for %k = %c0 to %c9 step %c1 iter_args(%sum = %zero, %w = %one) -> (f64, f64) : i64 {
      %c = arith.cmpf ogt, %w, %half : f64
      %next = scf.if %c -> (f64) {
        %t = arith.addf %sum, %v : f64
        scf.yield %t : f64
      } else {
        scf.yield %sum : f64
      }
      %s = costate.sin %v : f64
      %u = arith.mulf %w, %s : f64
      scf.yield %next, %u : f64, f64
    }
    costate.store %r#0, %y[%i] : !costate.array<f64, 1>
  }
}

// So does a private array: it has no adjoint.
// CHECK-LABEL: costate.kernel @watched.grad
// CHECK:         costate.local
// CHECK:         tape.pivot
// CHECK-NOT:     costate.local
// CHECK:         costate.return
costate.kernel @watched(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %at: !costate.array<i64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %a = costate.local : !costate.local<f64, 4>
    %s = costate.sin %v : f64
    costate.local_store %s, %a[%j] : !costate.local<f64, 4>
    %t = costate.local_load %a[%i] : !costate.local<f64, 4>
    %c = arith.cmpf ogt, %t, %half : f64
    %r = arith.select %c, %v, %half : f64
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// What two values carry for each other, and one of them for the result, counts.
// CHECK-LABEL: costate.kernel @swapped.grad
// CHECK:         tape.pivot
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f64, f64)
costate.kernel @swapped(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c9 = arith.constant 9 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r:2 = scf.for %k = %c0 to %c9 step %c1 iter_args(%a = %v, %b = %v) -> (f64, f64) : i64 {
      %s = costate.sin %a : f64
      scf.yield %b, %s : f64, f64
    }
    costate.store %r#0, %y[%i] : !costate.array<f64, 1>
  }
}
