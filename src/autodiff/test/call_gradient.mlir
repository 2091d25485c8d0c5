// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s

func.func private @f(%x: f64, %n: i64, %y: f64) -> (f64, i64) {
  %s = costate.sin %x : f64
  %p = arith.mulf %s, %y : f64
  return %p, %n : f64, i64
}

// A function that reads an array is part of the gradient, and one with a loop
// whose gradient saves values.
func.func private @reads(%a: !costate.array<f64, 1>, %i: i64) -> f64 {
  %x = costate.load %a[%i] : !costate.array<f64, 1>
  return %x : f64
}
func.func private @saves(%x: f64, %n: i64) -> f64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %y = scf.for %k = %zero to %n step %one iter_args(%v = %x) -> (f64) : i64 {
    %w = costate.exp %v : f64
    scf.yield %w : f64
  }
  return %y : f64
}

// A range in a serial loop.
// CHECK-LABEL: costate.kernel @driven.grad
// CHECK: tape.pivot
// CHECK: scf.for
// CHECK: costate.range
// CHECK: func.call @f.grad
costate.kernel @driven(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %iterations: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %t = %zero to %iterations step %one : i64 {
    costate.range (%i) in (%n) {
      %u = costate.load %x[%i] : !costate.array<f64, 1>
      %s, %m = func.call @f(%u, %i, %u) : (f64, i64, f64) -> (f64, i64)
      costate.atomic_add %s, %y[%m] : !costate.array<f64, 1>
    }
  }
}

// CHECK-LABEL: costate.kernel @calls.grad
// CHECK: %[[U:.*]] = costate.load
// CHECK: %[[ONE:.*]]:2 = func.call @f(%[[U]], %[[I:.*]], %[[U]])
// CHECK: %[[TWO:.*]]:2 = func.call @f(%[[ONE]]#0, %[[ONE]]#1, %[[U]])
// CHECK: tape.pivot
// CHECK: %[[G:.*]] = costate.load %{{.*}}[%[[TWO]]#1]
// CHECK: %[[A:.*]]:2 = func.call @f.grad(%[[ONE]]#0, %[[ONE]]#1, %[[U]], %[[G]]) : (f64, i64, f64, f64) -> (f64, f64)
// CHECK: %[[B:.*]]:2 = func.call @f.grad(%[[U]], %[[I]], %[[U]], %[[A]]#0)
// CHECK: %[[SUM:.*]] = arith.addf %[[A]]#1, %[[B]]#0
// CHECK: arith.addf %[[SUM]], %[[B]]#1
costate.kernel @calls(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %u = costate.load %x[%i] : !costate.array<f64, 1>
    %s, %m = func.call @f(%u, %i, %u) : (f64, i64, f64) -> (f64, i64)
    %t, %l = func.call @f(%s, %m, %u) : (f64, i64, f64) -> (f64, i64)
    costate.store %t, %y[%l] : !costate.array<f64, 1>
  }
}

// CHECK-LABEL: costate.kernel @others.grad
// CHECK-NOT: func.call
// CHECK: tape.push
// CHECK-NOT: func.call
costate.kernel @others(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %u = func.call @reads(%x, %i) : (!costate.array<f64, 1>, i64) -> f64
    %v = func.call @saves(%u, %i) : (f64, i64) -> f64
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
}

// CHECK-LABEL: func.func private @f.grad
// CHECK-SAME: (%[[X:[a-z0-9]*]]: f64, %{{.*}}: i64, %[[Y:[a-z0-9]*]]: f64, %[[GP:[a-z0-9]*]]: f64) -> (f64, f64)
// CHECK: %[[S:.*]] = costate.sin %[[X]]
// CHECK: %[[GS:.*]] = costate.strong_mul %[[GP]], %[[Y]]
// CHECK: %[[GY:.*]] = costate.strong_mul %[[GP]], %[[S]]
// CHECK: %[[C:.*]] = costate.cos %[[X]]
// CHECK: %[[GX:.*]] = costate.strong_mul %[[GS]], %[[C]]
// CHECK: return %[[GX]], %[[GY]]
