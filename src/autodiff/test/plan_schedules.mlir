// RUN: costate-opt %s --differentiate-reverse='plan=1' | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse='plan=1' | costate-opt | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse='plan=1 by-budget=1' | FileCheck %s --check-prefix=BUDGET
// RUN: costate-opt %s --differentiate-reverse='plan=1 by-budget=1' | costate-opt | FileCheck %s --check-prefix=BUDGET
// RUN: costate-opt %s --differentiate-reverse='by-budget=1' | FileCheck %s --check-prefix=DONE

// DONE-NOT: tape.schedule

// Which iterations are saved: the last ones. The others run again, from what a segment
// begins with, and what the reverse sweep takes of them is behind that.
// CHECK-LABEL: costate.kernel @iterate.grad
// CHECK:         tape.schedule segments(%[[COUNT:.*]] of %[[LENGTH:.*]]) rest(%[[REST:.*]]) in(%{{.*}})
// CHECK-NEXT:    scf.for %[[K:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[A:.*]] =
// CHECK-NOT:       tape.schedule
// CHECK:           scf.for %{{.*}} to %[[LENGTH]] step %{{.*}} iter_args(%[[B:.*]] =
// CHECK-NOT:         tape.push
// CHECK:             tape.plan behind({{.*}}%[[B]]
// CHECK:           } {costate.segment}
// CHECK:           tape.push record({{.*}}) %[[A]] : f64
// CHECK:           tape.plan saved(%[[A]] : f64) inverted(%[[K]] : i64)
// CHECK:         tape.schedule keep
// CHECK-NEXT:    scf.for %{{.*}} to %[[REST]] step
// CHECK:           tape.plan saved(
// CHECK:         } {costate.rest
// CHECK:         tape.pivot

// The copy that runs again is saved whole, and has a plan of its own.
// CHECK:           tape.schedule keep
// CHECK-NEXT:      scf.for
// CHECK:             tape.plan saved(
// CHECK:           } {costate.segment

// Each level has a schedule; only the outermost one has a rest, and what it divides is
// what the one above it has as a segment.
// BUDGET-LABEL: costate.kernel @free.grad
// BUDGET:         tape.schedule segments(%[[C0:.*]] of %{{.*}}) rest(%{{.*}}) in(%{{.*}})
// BUDGET-NEXT:    scf.for %{{.*}} to %[[C0]] step
// BUDGET:           %[[HERE:.*]] = arith.minsi
// BUDGET:           tape.schedule segments(%[[C1:.*]] of %{{.*}}) in(%[[HERE]])
// BUDGET-NEXT:      scf.for %{{.*}} to %[[C1]] step
// BUDGET:             tape.schedule segments(
// BUDGET:               tape.plan behind(
// BUDGET:           tape.plan saved(
// BUDGET:         tape.schedule keep
// BUDGET:         } {costate.rest
// BUDGET:         tape.pivot

// A `while` is divided as it runs.
// BUDGET-LABEL: costate.kernel @wait.grad
// BUDGET:         tape.schedule online
// BUDGET-NEXT:    scf.while
// BUDGET:           tape.plan saved(
// BUDGET:         } attributes {costate.rerun
costate.kernel @iterate(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      %p = arith.mulf %a, %q : f64
      scf.yield %p : f64
    } {costate.checkpoints = 4 : i64}
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

costate.kernel @free(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      %p = arith.mulf %a, %q : f64
      scf.yield %p : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

costate.kernel @wait(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %eps = arith.constant 1.0e-12 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.while (%a = %v) : (f64) -> f64 {
      %c = arith.cmpf ogt, %a, %eps : f64
      scf.condition(%c) %a : f64
    } do {
    ^bb0(%a: f64):
      %q = costate.sin %a : f64
      %w = arith.mulf %a, %q : f64
      scf.yield %w : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}
