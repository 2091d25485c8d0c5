// RUN: costate-opt %s | FileCheck %s
// RUN: costate-opt %s | costate-opt | FileCheck %s
// RUN: costate-opt %s --canonicalize --cse | FileCheck %s --check-prefix=CLEAN

// Private arrays print as they were written. A load is not that of before a
// store.
// CHECK-LABEL: costate.kernel @local(
// CLEAN-LABEL: costate.kernel @local(
costate.kernel @local(%x: !costate.array<f64, 1>, %b: i1) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    // CHECK: %[[A:.*]] = costate.local : !costate.local<f64, 8>
    // CHECK: %[[F:.*]] = costate.local : !costate.local<i1, 65536>
    %a = costate.local : !costate.local<f64, 8>
    %f = costate.local : !costate.local<i1, 65536>
    // CHECK: %[[V:.*]] = costate.local_load %[[A]][%{{.*}}] : !costate.local<f64, 8>
    // CLEAN: costate.local_load
    %v = costate.local_load %a[%zero] : !costate.local<f64, 8>
    %w = arith.addf %v, %v : f64
    // CHECK: costate.local_store %{{.*}}, %[[A]][%{{.*}}] : !costate.local<f64, 8>
    // CLEAN: costate.local_store
    costate.local_store %w, %a[%i] : !costate.local<f64, 8>
    // CHECK: costate.local_store %{{.*}}, %[[F]][%{{.*}}] : !costate.local<i1, 65536>
    costate.local_store %b, %f[%i] : !costate.local<i1, 65536>
    // CLEAN: costate.local_load
    %u = costate.local_load %a[%zero] : !costate.local<f64, 8>
    costate.store %u, %x[%i] : !costate.array<f64, 1>
    // CHECK: costate.local_clear %[[A]] : !costate.local<f64, 8>
    costate.local_clear %a : !costate.local<f64, 8>
  }
}
