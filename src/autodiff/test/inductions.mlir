// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s

// RULE: recomputation
// An integer that grows by the same amount in every iteration follows from the
// counter; only the float is saved.
// CHECK-LABEL: costate.kernel @counted.grad
// CHECK:         scf.for
// CHECK:           tape.push record({{[0-9]+}}) %{{[a-z0-9]+}} : f64
// CHECK:         tape.pivot
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %[[N:.*]] step
// CHECK-NEXT:      %[[LAST:.*]] = arith.subi %[[N]], %{{.*}}
// CHECK-NEXT:      %[[ITERATION:.*]] = arith.subi %[[LAST]], %[[J]]
// CHECK-NEXT:      tape.pop record({{[0-9]+}}) : f64
// CHECK:           %[[SHORT:.*]] = arith.trunci %[[ITERATION]]
// CHECK:           arith.muli %[[SHORT]]
costate.kernel @counted(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %stride: i32) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %first = arith.constant 3 : i32
  %f1 = arith.constant 1.0 : f64
  costate.range (%i) in (%e) {
    %r, %last = scf.for %k = %zero to %e step %one iter_args(%a = %f1, %at = %first) -> (f64, i32) : i64 {
      %wide = arith.extsi %at : i32 to i64
      %v = costate.load %x[%wide] : !costate.array<f64, 1>
      %b = arith.mulf %a, %v : f64
      %next = arith.addi %at, %stride : i32
      scf.yield %b, %next : f64, i32
    }
    %there = arith.extsi %last : i32 to i64
    costate.store %r, %y[%there] : !costate.array<f64, 1>
  }
}

// RULE: recomputation
// The same in a while, whose own iterations are counted.
// CHECK-LABEL: costate.kernel @until.grad
// CHECK:         scf.while
// CHECK:           tape.push record({{[0-9]+}}) %{{[a-z0-9]+}} : f64
// CHECK:         tape.pivot
// CHECK:         tape.pop record({{[0-9]+}}) : f64
costate.kernel @until(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %two = arith.constant 2 : i64
  %f1 = arith.constant 1.0 : f64
  %big = arith.constant 1.0e3 : f64
  costate.range (%i) in (%e) {
    %r, %last = scf.while (%a = %f1, %at = %zero) : (f64, i64) -> (f64, i64) {
      %c = arith.cmpf olt, %a, %big : f64
      scf.condition(%c) %a, %at : f64, i64
    } do {
    ^bb0(%a: f64, %at: i64):
      %v = costate.load %x[%at] : !costate.array<f64, 1>
      %b = arith.mulf %a, %v : f64
      %next = arith.addi %at, %two : i64
      scf.yield %b, %next : f64, i64
    }
    costate.store %r, %y[%last] : !costate.array<f64, 1>
  }
}
