// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse | costate-opt --mlir-print-op-generic | costate-opt | FileCheck %s --check-prefix=AGAIN

// What a gradient contains parses and verifies again.
// AGAIN: costate.kernel @iterate.grad
// AGAIN: tape.push
// AGAIN: tape.pivot
// AGAIN: tape.pop

// RULE: records
// v <- v * sin(v): the carried value and the expensive sine are saved in one record
// per iteration; the trip count is in scope, the counter is inverted.
// CHECK-LABEL: costate.kernel @iterate.grad
// CHECK-SAME:    %[[GX:[a-z0-9]+]]: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}
// CHECK-SAME:    %[[GY:[a-z0-9]+]]: !costate.array<f64, 1> {costate.adjoint_of = 2 : i64}
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           %[[N:.*]] = costate.trip_count
// CHECK:           scf.for {{.*}} iter_args(%[[A:.*]] =
// CHECK:             %[[SIN:.*]] = costate.sin %[[A]]
// CHECK:             tape.push record({{[0-9]+}}) %[[A]], %[[SIN]] : f64, f64
// CHECK:           tape.pivot
// CHECK:           %[[G:.*]] = costate.load %[[GY]][%[[I]]]
// CHECK:           costate.store %{{.*}}, %[[GY]][%[[I]]]
// CHECK:           %[[R:.*]] = scf.for %{{.*}} to %[[N]] {{.*}} iter_args(%[[H:.*]] = %[[G]])
// CHECK:             tape.pop record({{[0-9]+}}) : f64, f64
// CHECK:           costate.atomic_add exclusive %[[R]], %[[GX]][%[[I]]]
costate.kernel @iterate(%x: !costate.array<f64, 1>, %n: !costate.array<i32, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %m = costate.load %n[%i] : !costate.array<i32, 1>
    %hi = arith.extsi %m : i32 to i64
    %t = costate.trip_count %zero to %hi by %one
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      %p = arith.mulf %a, %q : f64
      scf.yield %p : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A sum saves nothing: its addends are loads that memory still holds.
// CHECK-LABEL: costate.kernel @sum.grad
// CHECK-NOT:     tape.push
// CHECK:         scf.for
// CHECK:           costate.atomic_add
costate.kernel @sum(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f64
  costate.range (%i) in (%one) {
    %r = scf.for %k = %zero to %e step %one iter_args(%s = %f0) -> (f64) : i64 {
      %v = costate.load %x[%k] : !costate.array<f64, 1>
      %w = arith.mulf %v, %v : f64
      %t = arith.addf %s, %w : f64
      scf.yield %t : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// RULE: records, recomputation
// Trip counts and conditions belong to the record of the enclosing block; the
// bool of the branch is saved, since it comes from floats.
// CHECK-LABEL: costate.kernel @nested.grad
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             tape.push record({{[0-9]+}}) %{{.*}} : f64{{$}}
// CHECK:           scf.if
// CHECK:           tape.push {{.*}}i1
// CHECK:         tape.pivot
costate.kernel @nested(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %e step %one iter_args(%a = %v) -> (f64) : i64 {
      %t = costate.load %n[%k] : !costate.array<i64, 1>
      %b = scf.for %l = %zero to %t step %one iter_args(%c = %a) -> (f64) : i64 {
        %d = arith.mulf %c, %c : f64
        scf.yield %d : f64
      }
      %big = arith.cmpf ogt, %b, %f1 : f64
      %w = scf.if %big -> (f64) {
        %u = arith.mulf %b, %v : f64
        scf.yield %u : f64
      } else {
        scf.yield %b : f64
      }
      scf.yield %w : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}
