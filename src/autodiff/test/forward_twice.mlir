// RUN: costate-opt %s --mark-exclusive --differentiate-forward --differentiate-forward --canonicalize --cse | FileCheck %s

// The load by which the tangent finds out who has won is no other use of the
// element: both derivatives go to the same value where two are equal.
// CHECK-LABEL: costate.kernel @own.jvp.jvp
// CHECK:         costate.atomic_min exclusive %[[V:.*]], %arg1[%[[I:.*]]]
// CHECK-NEXT:    %[[NOW:.*]] = costate.load %arg1[%[[I]]] {costate.becomes}
// CHECK-NEXT:    %[[WINS:.*]] = arith.cmpf oeq, %[[V]], %[[NOW]]
// CHECK-NEXT:    %[[OLD:.*]] = costate.load %arg5[%[[I]]]
// CHECK-NEXT:    %[[NEXT:.*]] = arith.select %[[WINS]], %{{.*}}, %[[OLD]]
// CHECK-NEXT:    costate.store %[[NEXT]], %arg5[%[[I]]]
costate.kernel @own(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_min %v, %m[%i] : !costate.array<f64, 1>
  }
}
