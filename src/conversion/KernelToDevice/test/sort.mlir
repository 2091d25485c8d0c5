// RUN: costate-opt %s --place-tapes --outline-device | FileCheck %s

// Threads say how deep each work item is before they run any; whether they do
// is in words after those of the tapes.

// CHECK:       costate.device_function "ragged.device0" {{.*}}sort_costs = array<i64: [[COSTS:[-0-9, ]+]]>
// CHECK-LABEL: llvm.func internal @ragged.device0.body(
// CHECK:         %[[PLACE:.*]] = llvm.call @costate_device_tape_place(
// CHECK:         %[[FIRST:.*]] = llvm.call @costate_device_sort_begin({{.*}}, %[[PLACE]])
// CHECK:         scf.while (%[[MORE:.*]] = %[[FIRST]])
// CHECK:           arith.cmpi ne, %[[MORE]]
// CHECK:           %[[ROUNDS:.*]] = llvm.call @costate_device_sort_rounds(
// CHECK:           scf.for %[[FIRST:.*]] = %{{.*}} to %[[ROUNDS]]
// CHECK:             %[[K:.*]] = arith.addi %[[FIRST]]
// CHECK:             %[[ITEM:.*]] = llvm.call @costate_device_sort_work_item(%{{.*}}, %[[K]])
// CHECK:             %[[DEPTH:.*]] = scf.if
// CHECK:               %[[N:.*]] = costate.load
// CHECK:               %[[T:.*]] = arith.maxsi %[[N]]
// CHECK:               scf.yield %[[T]]
// CHECK-COUNT-3:     llvm.call @costate_device_sort_work_item(
// CHECK:             llvm.call @costate_device_sort_take(%{{.*}}, %[[K]], %[[ITEM]], %[[DEPTH]])
// CHECK-COUNT-3:     llvm.call @costate_device_sort_take(
// CHECK:           %[[NEXT:.*]] = llvm.call @costate_device_sort_next(
// CHECK:           scf.yield %[[NEXT]]
// CHECK:         llvm.call @costate_device_sort_end(
// CHECK:         llvm.call @costate_device_tape_begin({{.*}}, %[[PLACE]])
// CHECK:         llvm.call @costate_device_tape_work_item(
costate.kernel @ragged(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %c = costate.cos %a : f32
      %m = costate.strong_mul %h, %c : f32
      scf.yield %m : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i] : !costate.array<f32, 1>
  }
}

// A dimension of one element does not count: neighbours are as before.
// CHECK:       costate.device_function "environments.device0" {{.*}}sort_costs = array<i64: [[COSTS]]>
costate.kernel @environments(%x: !costate.array<f32, 2> {costate.extents = array<i64: -1, 1>}, %n: !costate.array<i64, 1>, %g: !costate.array<f32, 2> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f1 = arith.constant 1.0 : f32
  %e = costate.extent %x[0] : !costate.array<f32, 2>
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i, %zero] : !costate.array<f32, 2>
    %t = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %zero to %t step %one iter_args(%a = %v) -> (f32) : i64 {
      %q = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %q : f32
    } {tape.pair = 0 : i64}
    tape.pivot
    %s = scf.for %k = %zero to %t step %one iter_args(%h = %f1) -> (f32) : i64 {
      %a = tape.pop record(0) : f32
      %c = costate.cos %a : f32
      %m = costate.strong_mul %h, %c : f32
      scf.yield %m : f32
    } {tape.pair = 0 : i64}
    costate.atomic_add exclusive %s, %g[%i, %zero] : !costate.array<f32, 2>
  }
}
