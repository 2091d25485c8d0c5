// RUN: costate-opt %s --mark-exclusive --differentiate-forward --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// Without interference the tangent is that of the value, if the element has
// become it.
// CHECK-LABEL: costate.kernel @own.jvp
// CHECK:         costate.atomic_min exclusive %[[V:.*]], %arg1[%[[I:.*]]]
// CHECK-NEXT:    %[[NOW:.*]] = costate.load %arg1[%[[I]]]
// CHECK-NEXT:    %[[WINS:.*]] = arith.cmpf oeq, %[[V]], %[[NOW]]
// CHECK-NEXT:    %[[OLD:.*]] = costate.load %arg3[%[[I]]]
// CHECK-NEXT:    %[[NEXT:.*]] = arith.select %[[WINS]], %{{.*}}, %[[OLD]]
// CHECK-NEXT:    costate.store %[[NEXT]], %arg3[%[[I]]]
costate.kernel @own(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_min %v, %m[%i] : !costate.array<f64, 1>
  }
}

// What is taken has a tangent that is taken.
// CHECK-LABEL: costate.kernel @taken.jvp
// CHECK:         %[[G:.*]] = costate.atomic_take %arg1[]
// CHECK-NEXT:    %[[DG:.*]] = costate.atomic_take %arg3[]
// CHECK:         costate.atomic_add exclusive %[[G]], %arg0
// CHECK-NEXT:    costate.atomic_add exclusive %[[DG]], %arg2
costate.kernel @taken(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %g = costate.atomic_take %m[] : !costate.array<f64, 0>
    costate.atomic_add %g, %x[%i] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @shared(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{several work items may give this minimum or maximum, and which of them does is known after the range only; so it has no forward derivative}}
    // expected-note @+1 {{it has a reverse derivative}}
    costate.atomic_min %v, %m[] : !costate.array<f64, 0>
  }
}
