// RUN: costate-opt %s --contract-multiply-add | FileCheck %s

// CHECK-LABEL: costate.kernel @sum(
// CHECK-SAME: %[[A:.*]]: f64, %[[B:.*]]: f64, %[[C:.*]]: f64, %[[X:.*]]: !costate.array
costate.kernel @sum(%a: f64, %b: f64, %c: f64, %x: !costate.array<f64, 0>) {
  // CHECK-NEXT: %[[F:.*]] = math.fma %[[A]], %[[B]], %[[C]] : f64
  // CHECK-NEXT: costate.store %[[F]]
  %p = arith.mulf %a, %b : f64
  %s = arith.addf %c, %p : f64
  costate.store %s, %x[] : !costate.array<f64, 0>
}

// CHECK-LABEL: costate.kernel @differences(
// CHECK-SAME: %[[A:.*]]: f64, %[[B:.*]]: f64, %[[C:.*]]: f64, %[[X:.*]]: !costate.array
costate.kernel @differences(%a: f64, %b: f64, %c: f64, %x: !costate.array<f64, 0>) {
  // CHECK-NEXT: %[[N:.*]] = arith.negf %[[C]] : f64
  // CHECK-NEXT: math.fma %[[A]], %[[B]], %[[N]] : f64
  %p = arith.mulf %a, %b : f64
  %s = arith.subf %p, %c : f64
  costate.store %s, %x[] : !costate.array<f64, 0>
  // CHECK: %[[M:.*]] = arith.negf %[[A]] : f64
  // CHECK-NEXT: math.fma %[[M]], %[[B]], %[[C]] : f64
  %q = arith.mulf %a, %b : f64
  %t = arith.subf %c, %q : f64
  costate.store %t, %x[] : !costate.array<f64, 0>
}

// A product that is used twice keeps its rounding; so does one of another block.
// CHECK-LABEL: costate.kernel @kept(
// CHECK-NOT: math.fma
costate.kernel @kept(%a: f64, %b: f64, %k: i1, %x: !costate.array<f64, 0>) {
  %p = arith.mulf %a, %b : f64
  %s = arith.addf %p, %a : f64
  costate.store %s, %x[] : !costate.array<f64, 0>
  costate.store %p, %x[] : !costate.array<f64, 0>
  %q = arith.mulf %b, %b : f64
  scf.if %k {
    %t = arith.addf %q, %a : f64
    costate.store %t, %x[] : !costate.array<f64, 0>
  }
}
