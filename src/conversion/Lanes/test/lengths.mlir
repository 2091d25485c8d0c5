// RUN: costate-opt %s --outline-ranges --form-lanes="lanes=4" | FileCheck %s

// Two vectors tell whether lanes would wait; blocks come in the order of their
// lengths then, and else as they are.
// CHECK:       llvm.func @costate_order_by_length(!llvm.ptr, i64, !llvm.ptr)
// CHECK:       llvm.func @costate_lengths_differ(!llvm.ptr, i64, i64, i64) -> i32
// CHECK-LABEL: llvm.func internal @ragged.chunk0
// CHECK-SAME:    costate.ordered_lanes
// CHECK:         %[[DIFFER:.*]] = scf.if %{{.*}} -> (i1)
// CHECK-COUNT-2:   llvm.store {{.*}} : i32, !llvm.ptr
// CHECK:           llvm.call @costate_lengths_differ
// CHECK:         scf.if %[[DIFFER]] {
// CHECK:           scf.for %[[BLOCK:.*]] = %{{.*}} step %c1024
// CHECK:             llvm.call @costate_order_by_length
// CHECK:             scf.for %{{.*}} step %c4_i64
// CHECK:               llvm.load {{.*}} -> vector<4xi16>
// CHECK:               costate.sin %{{.*}} : vector<4xf64>
// CHECK:         } else {
// CHECK:           scf.for %{{.*}} step %c4_i64
// CHECK-NOT:         vector<4xi16>
// CHECK:             costate.sin %{{.*}} : vector<4xf64>
costate.kernel @ragged(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f64 : i64 {
      %s = costate.sin %a : f64
      scf.yield %s : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
  costate.return
}

// Neighbours in the loop are read side by side, which no other order leaves so.
// CHECK-LABEL: llvm.func internal @columns.chunk0
// CHECK-NOT:     costate.ordered_lanes
// CHECK-NOT:     llvm.call @costate_lengths_differ
// CHECK:         llvm.return
costate.kernel @columns(%x: !costate.array<f64, 2>, %n: !costate.array<i64, 1>, %y: !costate.array<f64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %size = costate.extent %n[0] : !costate.array<i64, 1>
  costate.range (%i) in (%size) {
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %zero) -> f64 : i64 {
      %v = costate.load %x[%k, %i] : !costate.array<f64, 2>
      %s = costate.sin %v : f64
      %t = arith.addf %a, %s : f64
      scf.yield %t : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
  costate.return
}

// An index that is written first is not known ahead.
// CHECK-LABEL: llvm.func internal @written.chunk0
// CHECK-NOT:     costate.ordered_lanes
// CHECK:         llvm.return
costate.kernel @written(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>, %at: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    costate.store %i, %at[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %place = costate.load %at[%i] : !costate.array<i64, 1>
    %count = costate.load %n[%place] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f64 : i64 {
      %s = costate.sin %a : f64
      scf.yield %s : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
  costate.return
}

// Nor one that a branch reads, of an index of its own.
// CHECK-LABEL: llvm.func internal @branch.chunk0
// CHECK-NOT:     costate.ordered_lanes
// CHECK:         llvm.return
costate.kernel @branch(%x: !costate.array<f64, 1>, %n: !costate.array<i64, 1>, %at: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c7 = arith.constant 7 : i64
  %size = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%size) {
    costate.store %i, %at[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %some = arith.cmpi sgt, %i, %c7 : i64
    %count = scf.if %some -> i64 {
      %place = costate.load %at[%i] : !costate.array<i64, 1>
      %own = costate.load %n[%place] : !costate.array<i64, 1>
      scf.yield %own : i64
    } else {
      scf.yield %c0 : i64
    }
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f64 : i64 {
      %s = costate.sin %a : f64
      scf.yield %s : f64
    }
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
  costate.return
}
