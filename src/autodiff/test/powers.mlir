// RUN: costate-opt --split-input-file --differentiate-reverse --canonicalize --cse %s | FileCheck %s
// RUN: costate-opt --split-input-file --differentiate-forward --canonicalize --cse %s | FileCheck %s --check-prefix=FORWARD

// c x^n times x passes its derivative through that x alone.
// CHECK-LABEL: costate.kernel @cube.grad
// CHECK-DAG:     %[[THREE:.*]] = arith.constant 3.0
// CHECK:         %[[X:.*]] = costate.load %arg0
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK:         %[[G:.*]] = costate.load %arg3
// CHECK:         %[[PRODUCT:.*]] = costate.strong_mul %[[G]], %[[SQUARE]]
// CHECK:         %[[OF_X:.*]] = arith.mulf %[[PRODUCT]], %[[THREE]]
// CHECK-NOT:     strong_mul
// CHECK:         costate.atomic_add {{.*}}%[[OF_X]], %arg2
// FORWARD-LABEL: costate.kernel @cube.jvp
// FORWARD:         costate.strong_mul
// FORWARD-NOT:     costate.strong_mul
// FORWARD:         costate.return
costate.kernel @cube(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %square = arith.mulf %v, %v : f64
    %cube = arith.mulf %v, %square : f64
    costate.store %cube, %y[%i] : !costate.array<f64, 1>
  }
  costate.return
}

// -----

// Another factor keeps its own derivative.
// CHECK-LABEL: costate.kernel @others.grad
// CHECK-COUNT-4: costate.strong_mul
costate.kernel @others(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.load %y[%i] : !costate.array<f64, 1>
    %p = arith.mulf %v, %w : f64
    %q = arith.mulf %p, %v : f64
    costate.store %q, %y[%i] : !costate.array<f64, 1>
  }
  costate.return
}
