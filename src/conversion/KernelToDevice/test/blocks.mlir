// RUN: costate-opt %s --split-serial --outline-device | FileCheck %s

// Two arrays lie one behind the other in the memory of the block, at multiples
// of 16 bytes; a barrier ends each work item, so that the next one may write.
// CHECK:       costate.device_function "swap.device0" {block_dim = 64 : i64, {{.*}}collective, {{.*}}has_blocks, {{.*}}shared_bytes = 144 : i64
// CHECK:       llvm.func @swap.device0
// CHECK-SAME:    ["costate-shared", ""]
// CHECK-SAME:    ["costate-block-dim", "64"]
// CHECK-LABEL: llvm.func internal @swap.device0.body
// CHECK-SAME:    %[[MEMORY:[a-z0-9]+]]: !llvm.ptr)
// CHECK:         llvm.getelementptr %[[MEMORY]][0]
// CHECK:         llvm.getelementptr %[[MEMORY]][16]
// CHECK:         scf.for
// CHECK:           costate.group "block.sync"()
// CHECK:           llvm.call @costate_device_block_barrier()
// CHECK:         llvm.return
costate.kernel @swap(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) attributes {costate.block_dim = 64 : i64} {
    %zero = arith.constant 0 : i64
    %a = costate.shared : !costate.local<f32, 1>
    %b = costate.shared : !costate.local<f64, 16>
    %f = arith.constant 1.0 : f32
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %f, %a[%zero] : !costate.local<f32, 1>
    costate.local_store %v, %b[%zero] : !costate.local<f64, 16>
    costate.group "block.sync"() : () -> ()
    %w = costate.local_load %b[%zero] : !costate.local<f64, 16>
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}
