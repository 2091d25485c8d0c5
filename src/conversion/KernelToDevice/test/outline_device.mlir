// RUN: costate-opt %s --split-serial --outline-device | FileCheck %s
// RUN: costate-opt %s --split-serial --outline-device=lanes=64 | FileCheck %s --check-prefix=WIDE

// WIDE-LABEL: llvm.func internal @scaled.device0.body(
// WIDE-SAME:    costate.lanes = 1
// WIDE-LABEL: llvm.func @scaled.device1(
// WIDE:         %[[LANES:.*]] = arith.constant 64 : i64
// WIDE:         arith.remui %arg1, %[[LANES]]
// WIDE-LABEL: llvm.func internal @scaled.device1.body(
// WIDE-SAME:    costate.lanes = 64

// The host passes addresses, extents and integers; what serial code has
// computed is found in the frame, and so are sums.
// CHECK:       costate.frame_slots = 3

// CHECK-LABEL: llvm.func @scaled.entry(
// CHECK:         llvm.call @costate_device_run(%arg0, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NOT:     costate_device_read
// CHECK:         llvm.call @costate_device_run
// CHECK-NOT:     costate.load
// CHECK:         llvm.return

// CHECK:       costate.device_function "scaled.device0" {{.*}} serial
// CHECK-LABEL: llvm.func internal @scaled.device0.body(
// CHECK-SAME:    costate.lanes = 1
// CHECK:         costate.sin

// CHECK:       costate.device_function "scaled.device1" {adds_up, {{.*}}collective, {{.*}}sums = 1 : i64
// CHECK-LABEL: llvm.func @scaled.device1(
// CHECK-SAME:    ["costate-words", "15"], ["costate-sums", ""]
// CHECK-LABEL: llvm.func internal @scaled.device1.body(
// CHECK-SAME:    costate.lanes = 32
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args
// CHECK:         llvm.call @costate_device_add_up(
// CHECK-NEXT:    llvm.getelementptr
// CHECK:         llvm.call @costate_device_finish_sums(
costate.kernel @scaled(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 0>) {
  %zero = arith.constant 0 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  %s = costate.sin %v : f64
  %sum = costate.range (%i) in (%n) -> f64 {
    %w = costate.load %x[%i] : !costate.array<f64, 1>
    %p = arith.mulf %w, %s : f64
    costate.yield %p : f64
  }
  costate.atomic_add %sum, %y[] : !costate.array<f64, 0>
}
