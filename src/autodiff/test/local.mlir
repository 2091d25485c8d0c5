// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s
// RUN: costate-opt %s --differentiate-forward --canonicalize --cse | FileCheck %s --check-prefix=JVP

// The forward sweep runs the stores again and saves what it loads. The adjoint
// of an element is in a private array: a store takes it and clears it, a load
// adds to it.
// CHECK-LABEL: costate.kernel @state.grad
// CHECK:         %[[A:.*]] = costate.local
// CHECK:         scf.for
// CHECK:           %[[V:.*]] = costate.local_load %[[A]]
// CHECK:           %[[S:.*]] = costate.sin %[[V]]
// CHECK:           costate.local_store %[[S]], %[[A]]
// CHECK:           tape.push record(0) %[[V]] : f64
// CHECK:         tape.pivot
// CHECK:         %[[G:.*]] = costate.local
// CHECK:         scf.for
// CHECK:           %[[OLD:.*]] = tape.pop record(0) : f64
// CHECK:           %[[TAKEN:.*]] = costate.local_load %[[G]][%[[TO:.*]]]
// CHECK:           costate.local_store %{{.*}}, %[[G]][%[[TO]]]
// CHECK:           %[[F:.*]] = costate.cos %[[OLD]]
// CHECK:           %[[H:.*]] = costate.strong_mul %[[TAKEN]], %[[F]]
// CHECK:           %[[BEFORE:.*]] = costate.local_load %[[G]][%[[FROM:.*]]]
// CHECK:           %[[SUM:.*]] = arith.addf %[[BEFORE]], %[[H]]
// CHECK:           costate.local_store %[[SUM]], %[[G]][%[[FROM]]]
// JVP-LABEL:   costate.kernel @state.jvp
// JVP:           %[[A:.*]] = costate.local
// JVP:           %[[T:.*]] = costate.local
// JVP:           scf.for
// JVP:             costate.local_load %[[A]][%[[FROM:.*]]]
// JVP:             costate.local_load %[[T]][%[[FROM]]]
// JVP:             costate.local_store %{{.*}}, %[[A]][%[[TO:.*]]]
// JVP:             costate.local_store %{{.*}}, %[[T]][%[[TO]]]
costate.kernel @state(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 4>
    %s = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %s, %a[%zero] : !costate.local<f64, 4>
    scf.for %t = %zero to %m step %one : i64 {
      %next = arith.addi %t, %one : i64
      %v = costate.local_load %a[%t] : !costate.local<f64, 4>
      %w = costate.sin %v : f64
      costate.local_store %w, %a[%next] : !costate.local<f64, 4>
    }
    %r = costate.local_load %a[%m] : !costate.local<f64, 4>
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
}

// Each iteration declares another one. Its adjoint is one array for all iterations, which
// the declaration clears: what came together for its zeros belongs to no element
// of the iteration before.
// CHECK-LABEL: costate.kernel @iterations.grad
// CHECK-NOT:     costate.local :
// CHECK:         tape.pivot
// CHECK:         %[[G:.*]] = costate.local
// CHECK:         scf.for
// CHECK:           costate.local_clear %[[G]]
// CHECK-NEXT:    }
costate.kernel @iterations(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %m: i64, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    scf.for %t = %zero to %m step %one : i64 {
      %a = costate.local : !costate.local<f64, 4>
      %s = costate.load %x[%i] : !costate.array<f64, 1>
      costate.local_store %s, %a[%t] : !costate.local<f64, 4>
      %v = costate.local_load %a[%j] : !costate.local<f64, 4>
      costate.atomic_add %v, %y[%i] : !costate.array<f64, 1>
    }
  }
}

// What nobody loads is not stored again; integers have no adjoint, and steer.
// CHECK-LABEL: costate.kernel @unused.grad
// CHECK:         %[[K:.*]] = costate.local : !costate.local<i64, 2>
// CHECK-NOT:     costate.local :
// CHECK:         costate.local_store %{{.*}}, %[[K]]
// CHECK:         costate.local_load %[[K]]
// CHECK:         tape.pivot
// CHECK-NOT:     costate.local
costate.kernel @unused(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %k: !costate.array<i64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 4>
    %b = costate.local : !costate.local<i64, 2>
    %to = costate.load %k[%i] : !costate.array<i64, 1>
    costate.local_store %to, %b[%one] : !costate.local<i64, 2>
    %s = costate.load %x[%i] : !costate.array<f64, 1>
    %q = arith.mulf %s, %s : f64
    %at = costate.local_load %b[%one] : !costate.local<i64, 2>
    costate.atomic_add %q, %y[%at] : !costate.array<f64, 1>
  }
}
