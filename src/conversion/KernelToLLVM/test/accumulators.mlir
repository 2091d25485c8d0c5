// RUN: costate-opt %s --mark-reductions --outline-ranges | FileCheck %s

// An update of an integer goes to a place of the chunk, and from there to memory
// if a work item has come to it. Narrow numbers are compared as such.

// CHECK-LABEL: llvm.func internal @least.chunk0(
// CHECK: %[[MOST:.*]] = arith.constant -1 : i32
// CHECK: llvm.store %[[MOST]], %[[PLACE:.*]] : i32, !llvm.ptr
// CHECK: scf.for
// CHECK:   %[[VALUE:.*]] = costate.narrow %{{.*}} to ui8 : i32
// CHECK:   %[[OLD:.*]] = llvm.load %[[PLACE]]
// CHECK:   %[[NEXT:.*]] = arith.minui %[[OLD]], %[[VALUE]] : i32
// CHECK:   llvm.store %[[NEXT]], %[[PLACE]]
// CHECK: }
// CHECK: %[[LEAST:.*]] = llvm.load %[[PLACE]]
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[LEAST]], %{{.*}} : i32
// CHECK: scf.if %[[ANY]] {
// CHECK:   costate.atomic_min %[[LEAST]], %{{.*}}[%{{.*}}] : !costate.array<ui8, 1>
costate.kernel @least(%x: !costate.array<i32, 1>, %a: !costate.array<ui8, 1>, %j: i64) {
  %e = costate.extent %x[0] : !costate.array<i32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<i32, 1>
    costate.atomic_min %v, %a[%j] : !costate.array<ui8, 1>
  }
}
