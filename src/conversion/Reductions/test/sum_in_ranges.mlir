// RUN: costate-opt %s --mark-reductions --sum-in-ranges | FileCheck %s

// Two elements, one of them with two additions, in branches; the range has a
// result already.
// CHECK-LABEL: costate.kernel @branches
// CHECK:         %[[S:.*]]:3 = costate.range (%[[I:.*]]) in (%{{.*}}) -> (f64, f64, f32) attributes {costate.adds} {
// CHECK-NOT:       costate.atomic_add
// CHECK:           %[[B:.*]]:2 = scf.if %[[C:.*]] -> (f64, f32) {
// CHECK:             scf.yield %[[V:.*]], %[[W:.*]] :
// CHECK:           } else {
// CHECK:             scf.yield %[[ZERO:.*]], %[[NONE:.*]] :
// CHECK:           }
// CHECK:           %[[SUM:.*]] = arith.addf %[[V]], %[[B]]#0 : f64
// CHECK:           costate.yield %[[V]], %[[SUM]], %[[B]]#1 : f64, f64, f32
// CHECK:         }
// CHECK:         arith.cmpf une, %[[S]]#1
// CHECK:         scf.if
// CHECK:           costate.atomic_add %[[S]]#1, %arg1[
// CHECK:         arith.cmpf une, %[[S]]#2
// CHECK:         scf.if
// CHECK:           costate.atomic_add %[[S]]#2, %arg2[]
// CHECK:         costate.store %[[S]]#0
costate.kernel @branches(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f32, 0>) {
  %zero = arith.constant 0 : i64
  %limit = arith.constant 0.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %r = costate.range (%i) in (%n) -> (f64) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.truncf %v : f64 to f32
    %c = arith.cmpf ogt, %v, %limit : f64
    costate.atomic_add %v, %y[%zero] : !costate.array<f64, 1>
    scf.if %c {
      costate.atomic_add %v, %y[%zero] : !costate.array<f64, 1>
      costate.atomic_add %w, %z[] : !costate.array<f32, 0>
    }
    costate.yield %v : f64
  }
  costate.store %r, %x[%zero] : !costate.array<f64, 1>
}

// Beside whole results; in a loop; integers.
// CHECK-LABEL: costate.kernel @stays
// CHECK:         costate.range {{.*}} -> i64 {
// CHECK:           costate.atomic_add
// CHECK:         costate.range (%{{.*}}) in (%{{.*}}) {
// CHECK:           costate.atomic_add
// CHECK:           scf.while
// CHECK:             costate.atomic_add
costate.kernel @stays(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 0>, %k: !costate.array<i32, 0>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i32
  %limit = arith.constant 0.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %r = costate.range (%i) in (%n) -> (i64) {
    costate.atomic_add %limit, %y[] : !costate.array<f64, 0>
    costate.yield %i : i64
  }
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %one, %k[] : !costate.array<i32, 0>
    %last = scf.while (%a = %v) : (f64) -> f64 {
      %c = arith.cmpf ogt, %a, %limit : f64
      scf.condition(%c) %a : f64
    } do {
    ^bb0(%a: f64):
      costate.atomic_add %a, %y[] : !costate.array<f64, 0>
      scf.yield %limit : f64
    }
  }
}
