// RUN: costate-opt %s --outline-ranges | FileCheck %s

// Only work items with the same first index come to a row of %g, so chunks of
// whole slabs need no atomics for it. %h has one element for several of them.
// CHECK-LABEL: llvm.func @rows.entry
// CHECK:         %[[COUNT:.*]] = arith.select
// CHECK:         llvm.call @costate_copies
// CHECK:         %[[SLAB:.*]] = arith.maxsi
// CHECK:         llvm.call @costate_range({{.*}}, %[[COUNT]], {{.*}}, %[[SLAB]], %c1_i64{{[^,]*}}) :
// CHECK-LABEL: llvm.func internal @rows.chunk0
// CHECK:         scf.for
// CHECK:         costate.atomic_add %{{.*}}, %[[G:[a-z0-9_]+]][%[[K:[a-z0-9_]+]], %{{.*}}] {costate.slab}
// CHECK:         costate.atomic_add %{{.*}}, %[[G]][%[[K]], %{{.*}}] {costate.slab}
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 0 : i64} : !costate.array<f64, 1>
// CHECK:         costate.atomic_add %{{.*}} {costate.slab} : !costate.array<f64, 3>
costate.kernel @rows(%x: !costate.array<f64, 2>, %g: !costate.array<f64, 2>, %h: !costate.array<f64, 1>, %t: !costate.array<f64, 3>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%k, %i) in (%n, %m) {
    %v = costate.load %x[%k, %i] : !costate.array<f64, 2>
    scf.for %j = %c0 to %n step %c1 : i64 {
      costate.atomic_add %v, %g[%k, %j] : !costate.array<f64, 2>
    }
    costate.atomic_add %v, %g[%k, %c0] : !costate.array<f64, 2>
    costate.atomic_add %v, %h[%i] : !costate.array<f64, 1>
    %next = arith.addi %k, %c2 : i64
    costate.atomic_add %v, %t[%i, %next, %c0] : !costate.array<f64, 3>
  }
}

// Others find the same element where the index does not decide: by another
// index, by one that several first indices give, or at a fixed place.
// CHECK-LABEL: llvm.func @shared.entry
// CHECK:         llvm.call @costate_range({{.*}}, %c0_i64{{[^,]*}}, %c1_i64{{[^,]*}}) :
// CHECK-LABEL: llvm.func internal @shared.chunk0
// CHECK-NOT:     costate.slab
// CHECK-LABEL: llvm.func internal @shared.range0
costate.kernel @shared(%x: !costate.array<f64, 2>, %g: !costate.array<f64, 1>, %h: !costate.array<f64, 1>, %t: !costate.array<f64, 1>, %s: !costate.array<f64, 1>, %u: !costate.array<f64, 2>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%k, %i) in (%n, %m) {
    %v = costate.load %x[%k, %i] : !costate.array<f64, 2>
    costate.atomic_add %v, %g[%k] : !costate.array<f64, 1>
    %next = arith.addi %k, %c1 : i64
    costate.atomic_add %v, %g[%next] : !costate.array<f64, 1>
    %half = costate.shr %k, %c1 : i64
    costate.atomic_add %v, %h[%half] : !costate.array<f64, 1>
    costate.atomic_add %v, %t[%k] : !costate.array<f64, 1>
    costate.store %v, %t[%c0] : !costate.array<f64, 1>
    costate.atomic_add %v, %s[%c0] : !costate.array<f64, 1>
    costate.atomic_add %v, %u[%k, %i] : !costate.array<f64, 2>
    costate.atomic_add %v, %u[%i, %k] : !costate.array<f64, 2>
  }
}

// Chunks of one index are not of slabs.
// CHECK-LABEL: llvm.func internal @line.chunk0
// CHECK-NOT:     costate.slab
costate.kernel @line(%x: !costate.array<f64, 1>, %g: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%k) in (%n) {
    %v = costate.load %x[%k] : !costate.array<f64, 1>
    costate.atomic_add %v, %g[%k] : !costate.array<f64, 1>
  }
}
