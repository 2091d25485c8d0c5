// RUN: costate-opt %s --differentiate-reverse="active=0,1" --canonicalize --cse | FileCheck %s

// RULE: stores-clear
// A store consumes the adjoint of its element, an update does not; constants
// clear too. Products are strong unless the factor is a finite constant.
// CHECK-LABEL: costate.kernel @straight.grad
// CHECK-SAME:    %[[X:[a-z0-9]+]]: !costate.array<f64, 1>, %[[Y:[a-z0-9]+]]: !costate.array<f64, 1>, %[[C:[a-z0-9]+]]: !costate.array<f64, 1>, %[[GX:[a-z0-9]+]]: {{.*}}adjoint_of = 0{{.*}}, %[[GY:[a-z0-9]+]]: {{.*}}adjoint_of = 1
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-NEXT:      %[[FACTOR:.*]] = costate.load %[[C]][%[[I]]]
// CHECK-NEXT:      tape.pivot
// CHECK-NEXT:      %[[G:.*]] = costate.load %[[GY]][%[[I]]]
// CHECK-NEXT:      costate.store %{{.*}}, %[[GY]][%[[I]]]
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[G]], %{{.*}}
// CHECK-NEXT:      %[[H:.*]] = costate.strong_mul %[[SCALED]], %[[FACTOR]]
// CHECK-NEXT:      costate.atomic_add exclusive %[[H]], %[[GX]][%[[I]]]
costate.kernel @straight(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %two = arith.constant 2.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %f = costate.load %c[%i] : !costate.array<f64, 1>
    %p = arith.mulf %v, %f : f64
    %w = arith.mulf %p, %two : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// RULE: stores-clear
// CHECK-LABEL: costate.kernel @constants_clear.grad
// CHECK:         costate.range
// CHECK-NEXT:      tape.pivot
// CHECK-NEXT:      costate.store
// CHECK-NEXT:    }
costate.kernel @constants_clear(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %two = arith.constant 2.0 : f64
  costate.range (%i) in (%e) {
    costate.store %two, %y[%i] : !costate.array<f64, 1>
  }
}

// Other work items may touch the same element: the update is atomic.
// CHECK-LABEL: costate.kernel @gather.grad
// CHECK:         costate.atomic_add %
costate.kernel @gather(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %to: !costate.array<i64, 1>) {
  %e = costate.extent %y[0] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %j = costate.load %to[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
}

// RULE: serial-values
// Serial values that ranges use: their adjoints are sums over the range, which
// is reversed before the serial code.
// CHECK-LABEL: costate.kernel @serial.grad
// CHECK:         %[[S:.*]] = costate.sin
// CHECK:         tape.pivot
// CHECK:         %[[SUM:.*]] = costate.range {{.*}} -> f64
// CHECK:           costate.yield
// CHECK:         %[[COS:.*]] = costate.cos
// CHECK:         costate.strong_mul %[[SUM]], %[[COS]]
costate.kernel @serial(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %p = costate.load %x[%zero] : !costate.array<f64, 1>
  %s = costate.sin %p : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = arith.mulf %v, %s : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// Several work items may store a value that they have in common, and only one
// of them may take its adjoint.
// CHECK-LABEL: costate.kernel @common.grad
// CHECK:         %[[SUM:.*]] = costate.range
// CHECK:           %[[G:.*]] = costate.atomic_take %{{.*}}[%{{.*}}]
// CHECK-NEXT:      costate.yield %[[G]]
// CHECK:         costate.atomic_add %[[SUM]]
costate.kernel @common(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %to: !costate.array<i64, 1>) {
  %e = costate.extent %to[0] : !costate.array<i64, 1>
  %zero = arith.constant 0 : i64
  %p = costate.load %x[%zero] : !costate.array<f64, 1>
  costate.range (%i) in (%e) {
    %j = costate.load %to[%i] : !costate.array<i64, 1>
    costate.store %p, %y[%j] : !costate.array<f64, 1>
  }
}

// An element that is stored twice: its adjoint is taken and cleared once, and
// nothing is computed for what nobody sees.
// CHECK-LABEL: costate.kernel @twice.grad
// CHECK-NOT:     costate.exp
// CHECK:         costate.load %arg3
// CHECK-NEXT:    costate.store %{{.*}}, %arg3
// CHECK-NOT:     %arg3
// CHECK:         costate.return
costate.kernel @twice(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %e = costate.exp %v : f64
    costate.store %e, %y[%i] : !costate.array<f64, 1>
    %s = costate.sin %v : f64
    costate.store %s, %y[%i] : !costate.array<f64, 1>
  }
}
