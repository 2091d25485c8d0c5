// RUN: costate-opt %s --outline-ranges | FileCheck %s

// The runtime hears of the arrays that the range only adds to: base, number of
// elements, their bytes, and how many work items make a copy of an element pay.
// CHECK-LABEL: llvm.func @tables.entry
// CHECK:         llvm.call @costate_copies(%{{.*}}, %{{.*}}, %c2_i64{{[^,]*}})
// CHECK:         llvm.call @costate_range
// CHECK-LABEL: llvm.func internal @tables.chunk0
// CHECK:         scf.for
// CHECK:           costate.atomic_add %{{.*}} {costate.copy = 0 : i64} : !costate.array<f64, 1>
// CHECK:           scf.for
// CHECK:             costate.atomic_add %{{.*}} {costate.copy = 1 : i64} : !costate.array<f32, 2>
// CHECK-LABEL: llvm.func internal @tables.range0
// CHECK-SAME:    %{{[^,]*}}, %[[WORKER:[^:]*]]: !llvm.ptr,
// CHECK:         %[[SLOT:.*]] = llvm.getelementptr inbounds %[[WORKER]][6]
// CHECK:         %[[PLACES:.*]] = llvm.load %[[SLOT]]
// CHECK:         llvm.getelementptr inbounds %[[PLACES]][{{[02]}}]
// CHECK:         llvm.getelementptr inbounds %[[PLACES]][{{[02]}}]
// CHECK:         llvm.call @tables.chunk0
costate.kernel @tables(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %h: !costate.array<f64, 1>, %g: !costate.array<f32, 2>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %m = costate.extent %g[1] : !costate.array<f32, 2>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %bin = costate.load %at[%i] : !costate.array<i64, 1>
    costate.atomic_add %v, %h[%bin] : !costate.array<f64, 1>
    %w = arith.truncf %v : f64 to f32
    scf.for %j = %c0 to %m step %c1 : i64 {
      costate.atomic_add %w, %g[%c1, %j] : !costate.array<f32, 2>
    }
  }
}

// One element that is added to in a loop has copies as well.
// CHECK-LABEL: llvm.func @one.entry
// CHECK:         llvm.call @costate_copies(%{{.*}}, %{{.*}}, %c1_i64{{[^,]*}})
// CHECK-LABEL: llvm.func internal @one.chunk0
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 0 : i64} : !costate.array<f64, 0>
costate.kernel @one(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    scf.for %j = %c0 to %i step %c1 : i64 {
      %v = costate.load %x[%j] : !costate.array<f64, 1>
      costate.atomic_add %v, %s[] : !costate.array<f64, 0>
    }
  }
}

// Not what it reads, stores, or adds to as an owner, nor integers.
// CHECK-LABEL: llvm.func @others.entry
// CHECK-NOT:     costate_copies
// CHECK-LABEL: llvm.func internal @others.chunk0
// CHECK-NOT:     costate.copy
costate.kernel @others(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %h: !costate.array<f64, 1>, %s: !costate.array<f64, 1>, %e: !costate.array<f64, 1>, %k: !costate.array<i64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %bin = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %h[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %h[%bin] : !costate.array<f64, 1>
    costate.store %v, %s[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %s[%bin] : !costate.array<f64, 1>
    costate.atomic_add exclusive %v, %e[%i] : !costate.array<f64, 1>
    costate.atomic_add %bin, %k[%bin] : !costate.array<i64, 1>
  }
}
