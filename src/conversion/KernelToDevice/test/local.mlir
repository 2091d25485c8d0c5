// RUN: costate-opt %s --split-serial | FileCheck %s
// RUN: costate-opt %s --split-serial --outline-device --canonicalize | FileCheck %s --check-prefix=OUTLINED

// A private array of serial code that several regions use stays in front of
// them; it is cleared where it was declared. One that only one region uses goes
// there.
// CHECK-LABEL: costate.kernel @around
// CHECK:         %[[A:.*]] = costate.local : !costate.local<f32, 3>
// CHECK-NEXT:    costate.serial {
// CHECK-NEXT:      costate.local_clear %[[A]]
// CHECK-NEXT:      %[[B:.*]] = costate.local : !costate.local<f32, 5>
// CHECK:           costate.local_store %{{.*}}, %[[A]]
// CHECK:         costate.range
// CHECK:         costate.serial {
// CHECK:           costate.local_load %[[A]]

// Its elements are in the frame, after the slot of the tape.
// OUTLINED: costate.frame_slots = 3 : i64
// OUTLINED-LABEL: llvm.func internal @around.device0.body
// OUTLINED:   %[[FRAME:.*]] = llvm.load
// OUTLINED:   %[[MEMORY:.*]] = llvm.getelementptr inbounds %[[FRAME]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// OUTLINED:   %[[A:.*]] = builtin.unrealized_conversion_cast %[[MEMORY]] : !llvm.ptr to !costate.local<f32, 3>
// OUTLINED:   costate.local_clear %[[A]]
// OUTLINED-LABEL: llvm.func internal @around.device2.body
// OUTLINED:   costate.local_load
costate.kernel @around(%x: !costate.array<f32, 1>, %v: f32, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f32, 1>
  %a = costate.local : !costate.local<f32, 3>
  %b = costate.local : !costate.local<f32, 5>
  costate.local_store %v, %b[%j] : !costate.local<f32, 5>
  %w = costate.local_load %b[%n] : !costate.local<f32, 5>
  costate.local_store %w, %a[%j] : !costate.local<f32, 3>
  costate.range (%i) in (%n) {
    costate.store %v, %x[%i] : !costate.array<f32, 1>
  }
  %u = costate.local_load %a[%j] : !costate.local<f32, 3>
  costate.store %u, %x[%j] : !costate.array<f32, 1>
}
