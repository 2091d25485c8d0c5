// RUN: costate-opt %s --outline-ranges | FileCheck %s

// The runtime hears of the arrays that the range only adds to: base, number of
// elements, their bytes, whether they are floats, how many additions a work
// item makes, and whether some are in loops.
// CHECK-LABEL: llvm.func @tables.entry
// CHECK:         llvm.call @costate_copies(%{{.*}}, %{{.*}}, %c2_i64{{[^,]*}})
// CHECK:         llvm.call @costate_range
// CHECK-LABEL: llvm.func internal @tables.chunk0
// CHECK:         scf.for
// CHECK:           costate.atomic_add %{{.*}} {costate.copy = 0 : i64} : !costate.array<f64, 1>
// CHECK:           scf.for
// CHECK:             costate.atomic_add %{{.*}} {costate.copy = 1 : i64} : !costate.array<f32, 1>
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

// Not what it reads, stores, or adds to as an owner, nor narrow numbers.
// CHECK-LABEL: llvm.func @others.entry
// CHECK-NOT:     costate_copies
// CHECK-LABEL: llvm.func internal @others.chunk0
// CHECK-NOT:     costate.copy
costate.kernel @others(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %h: !costate.array<f64, 1>, %s: !costate.array<f64, 1>, %e: !costate.array<f64, 1>, %k: !costate.array<i16, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %bin = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %h[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %h[%bin] : !costate.array<f64, 1>
    costate.store %v, %s[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %s[%bin] : !costate.array<f64, 1>
    costate.atomic_add exclusive %v, %e[%i] : !costate.array<f64, 1>
    %one = arith.trunci %bin : i64 to i32
    costate.atomic_add %one, %k[%bin] : !costate.array<i16, 1>
  }
}

// The elements of one time step are an array of their own, also beside reads of
// another step, and so are integers.
// CHECK-LABEL: llvm.func @steps.entry
// CHECK:         %[[NEXT:.*]] = arith.addi %{{.*}}, %c1_i64
// CHECK:         %[[ROWS:.*]] = arith.muli %[[NEXT]]
// CHECK:         %[[FIRST:.*]] = arith.muli %[[ROWS]]
// CHECK:         llvm.getelementptr %{{.*}}[%[[FIRST]]]
// CHECK:         llvm.call @costate_copies(%{{.*}}, %{{.*}}, %c2_i64{{[^,]*}})
// CHECK-LABEL: llvm.func internal @steps.chunk0
// CHECK:         costate.load %{{.*}} : !costate.array<f64, 3>
// CHECK:         costate.atomic_add %{{.*}}, %[[G:.*]][%{{[^,]*}}, %c0_i64{{[^,]*}}] {costate.copy = 0 : i64} : !costate.array<f64, 2>
// CHECK:         costate.atomic_add %{{.*}}, %[[G]][%{{[^,]*}}, %c1_i64{{[^,]*}}] {costate.copy = 0 : i64} : !costate.array<f64, 2>
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 1 : i64} : !costate.array<ui32, 1>
costate.kernel @steps(%at: !costate.array<i64, 1>, %g: !costate.array<f64, 3>, %k: !costate.array<ui32, 1>, %t: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %n = costate.extent %at[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %bin = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %g[%t, %i, %c0] : !costate.array<f64, 3>
    %next = arith.addi %t, %c1 : i64
    costate.atomic_add %v, %g[%next, %bin, %c0] : !costate.array<f64, 3>
    costate.atomic_add %v, %g[%next, %bin, %c1] : !costate.array<f64, 3>
    costate.atomic_add %one, %k[%bin] : !costate.array<ui32, 1>
  }
}

// Slices that a work item may read, in whole or by another name of the step,
// have no copies.
// CHECK-LABEL: llvm.func @same_steps.entry
// CHECK-NOT:     costate_copies
// CHECK-LABEL: llvm.func internal @same_steps.chunk0
// CHECK-NOT:     costate.copy
costate.kernel @same_steps(%at: !costate.array<i64, 1>, %g: !costate.array<f64, 2>, %h: !costate.array<f64, 2>, %s: i64, %t: i64) {
  %n = costate.extent %at[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %bin = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %g[%s, %i] : !costate.array<f64, 2>
    costate.atomic_add %v, %g[%t, %bin] : !costate.array<f64, 2>
    %w = costate.load %h[%i, %s] : !costate.array<f64, 2>
    costate.atomic_add %w, %h[%t, %bin] : !costate.array<f64, 2>
  }
}

// Two steps that are added to are two arrays; those that may be one are one,
// here the whole.
// CHECK-LABEL: llvm.func @two_steps.entry
// CHECK:         llvm.call @costate_copies(%{{.*}}, %{{.*}}, %c3_i64{{[^,]*}})
// CHECK-LABEL: llvm.func internal @two_steps.chunk0
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 0 : i64} : !costate.array<f64, 1>
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 1 : i64} : !costate.array<f64, 1>
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 2 : i64} : !costate.array<f64, 2>
// CHECK:         costate.atomic_add %{{.*}} {costate.copy = 2 : i64} : !costate.array<f64, 2>
costate.kernel @two_steps(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %g: !costate.array<f64, 2>, %h: !costate.array<f64, 2>, %s: i64, %t: i64) {
  %c1 = arith.constant 1 : i64
  %n = costate.extent %at[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %bin = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %next = arith.addi %t, %c1 : i64
    costate.atomic_add %v, %g[%t, %bin] : !costate.array<f64, 2>
    costate.atomic_add %v, %g[%next, %bin] : !costate.array<f64, 2>
    costate.atomic_add %v, %h[%s, %bin] : !costate.array<f64, 2>
    costate.atomic_add %v, %h[%t, %bin] : !costate.array<f64, 2>
  }
}
