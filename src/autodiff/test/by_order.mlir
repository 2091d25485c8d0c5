// RUN: costate-opt %s --differentiate-reverse | FileCheck %s
// RUN: costate-opt %s --differentiate-reverse --differentiate-forward=order=2 | FileCheck %s --check-prefix=MORE

// Each differentiation takes the first value away, but not the last one.
// CHECK-LABEL: costate.kernel @near(
// CHECK: costate.by_order %{{.*}}, %{{.*}}, %{{.*}} : f64
// CHECK-LABEL: costate.kernel @near.grad(
// CHECK-DAG: %[[B:.*]] = arith.constant 2.0
// CHECK-DAG: %[[C:.*]] = arith.constant 3.0
// CHECK: costate.by_order %[[B]], %[[C]] : f64
// MORE-LABEL: costate.kernel @near.jvp(
// MORE: %[[C:.*]] = arith.constant 3.0
// MORE: costate.by_order %[[C]] : f64
costate.kernel @near(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %a = arith.constant 1.0 : f64
  %b = arith.constant 2.0 : f64
  %c = arith.constant 3.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %f = costate.by_order %a, %b, %c : f64
    %w = arith.mulf %v, %f : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}
