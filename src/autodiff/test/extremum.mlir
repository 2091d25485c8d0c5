// RUN: costate-opt %s --mark-exclusive --differentiate-reverse="active=0,1" --canonicalize --cse | FileCheck %s

// The work items whose value the range has left take the adjoint: whoever comes
// first gets it.
// CHECK-LABEL: costate.kernel @shared.grad
// CHECK:         tape.pivot
// CHECK:         %[[V:.*]] = arith.mulf
// CHECK-NEXT:    tape.pivot
// CHECK-NEXT:    %[[FINAL:.*]] = costate.load %arg1[] {costate.after_part}
// CHECK-NEXT:    %[[WINS:.*]] = arith.cmpf oeq, %[[V]], %[[FINAL]]
// CHECK-NEXT:    %[[G:.*]] = scf.if %[[WINS]] -> (f64) {
// CHECK-NEXT:      %[[TAKEN:.*]] = costate.atomic_take %arg3[]
// CHECK-NEXT:      scf.yield %[[TAKEN]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %{{.*}}
// CHECK-NEXT:    }
// CHECK:         costate.strong_mul %[[G]]
costate.kernel @shared(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %v : f64
    costate.atomic_max %w, %m[] : !costate.array<f64, 0>
  }
}

// A constant takes it as well; an element of its own needs no atomics.
// CHECK-LABEL: costate.kernel @constant.grad
// CHECK:         tape.pivot
// CHECK-NEXT:    costate.range
// CHECK-NEXT:      tape.pivot
// CHECK-NEXT:      %[[FINAL:.*]] = costate.load %arg1[%[[I:.*]]] {costate.after_part}
// CHECK-NEXT:      %[[WINS:.*]] = arith.cmpf oeq, %{{.*}}, %[[FINAL]]
// CHECK-NEXT:      scf.if %[[WINS]] {
// CHECK-NEXT:        costate.store %{{.*}}, %arg3[%[[I]]]
// CHECK-NEXT:      }
costate.kernel @constant(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %one = arith.constant 1.0 : f64
  costate.range (%i) in (%n) {
    costate.atomic_min %one, %m[%i] : !costate.array<f64, 1>
  }
}

// What the first range has left is overwritten by the second one: it is a
// version of its own.
// CHECK-LABEL: costate.kernel @twice.grad
// CHECK-SAME:    %[[MIDDLE:[a-z0-9]+]]: !costate.array<f64, 0> {costate.part = 2 : i64, costate.version_of = 1 : i64})
// CHECK:         costate.load %arg1[] {costate.after_part}
// CHECK:         costate.load %[[MIDDLE]][] {costate.after_part}
costate.kernel @twice(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_max %v, %m[] : !costate.array<f64, 0>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_max %v, %m[] : !costate.array<f64, 0>
  }
}

// Serial code needs no atomics either; integers have no adjoint.
// CHECK-LABEL: costate.kernel @serial.grad
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK-NEXT:        costate.load %arg4[]
// CHECK-NEXT:        costate.store %{{.*}}, %arg4[]
// CHECK-NOT:     costate.atomic_max
costate.kernel @serial(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>, %k: !costate.array<i64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_max %v, %m[] : !costate.array<f64, 0>
    costate.atomic_max %i, %k[] : !costate.array<i64, 0>
  }
}
