// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s

// RULE: conditions
// The condition has no reverse: as many iterations as the loop had, counted by the
// forward sweep.
// CHECK-LABEL: costate.kernel @newton.grad
// CHECK:         %[[W:.*]]:2 = scf.while
// CHECK:           tape.push record({{[0-9]+}}) %{{.*}} : f64{{$}}
// CHECK:         tape.pivot
// CHECK:         scf.for %{{.*}} to %[[W]]#1
// CHECK-NEXT:      tape.pop record({{[0-9]+}}) : f64
costate.kernel @newton(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %h = arith.constant 0.5 : f64
  %eps = arith.constant 1.0e-12 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.while (%a = %v) : (f64) -> f64 {
      %a2 = arith.mulf %a, %a : f64
      %d = arith.subf %a2, %v : f64
      %ad = math.absf %d : f64
      %c = arith.cmpf ogt, %ad, %eps : f64
      scf.condition(%c) %a : f64
    } do {
    ^bb0(%a: f64):
      %q = arith.divf %v, %a : f64
      %s = arith.addf %a, %q : f64
      %w = arith.mulf %h, %s : f64
      scf.yield %w : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// RULE: conditions
// The region before the condition computes what it passes on: it runs once more
// than the body and has records of its own, popped in the opposite order.
// CHECK-LABEL: costate.kernel @computing.grad
// CHECK:         %[[W:.*]]:2 = scf.while
// CHECK:           tape.push
// CHECK:           scf.condition
// CHECK:           tape.push
// CHECK:           scf.yield
// CHECK:         tape.pivot
// CHECK:         %[[ITERATIONS:.*]] = arith.addi %[[W]]#1
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %[[ITERATIONS]]
// CHECK:           scf.if
// CHECK:             tape.pop
// CHECK:           tape.pop
costate.kernel @computing(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %ten = arith.constant 10.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.while (%a = %v) : (f64) -> f64 {
      %b = arith.mulf %a, %a : f64
      %c = arith.cmpf olt, %b, %ten : f64
      scf.condition(%c) %b : f64
    } do {
    ^bb0(%b: f64):
      %w = costate.exp %b : f64
      scf.yield %w : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}
