// RUN: costate-opt %s | costate-opt | FileCheck %s

// CHECK-LABEL: costate.kernel @sums
// CHECK:         costate.range (%{{.*}}) in (%{{.*}}) attributes {costate.block_dim = 128 : i64}
// CHECK:           %[[A:.*]] = costate.shared : !costate.local<f32, 128>
// CHECK:           costate.local_store %{{.*}}, %[[A]][%{{.*}}] : !costate.local<f32, 128>
// CHECK:           costate.group "block.sync"() : () -> ()
// CHECK:           costate.shared_update "add" %{{.*}}, %[[A]][%{{.*}}] : !costate.local<f32, 128>
// CHECK:           costate.group "warp.shuffle_down"(%{{.*}}, %{{.*}}, %{{.*}}) : (i32, f32, i32) -> f32
costate.kernel @sums(%x: !costate.array<f32, 1>) {
  %n = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%n) attributes {costate.block_dim = 128 : i64} {
    %mask = arith.constant -1 : i32
    %one = arith.constant 1 : i32
    %a = costate.shared : !costate.local<f32, 128>
    %t = costate.group "block.thread_index"() : () -> i32
    %k = arith.extsi %t : i32 to i64
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    costate.local_store %v, %a[%k] : !costate.local<f32, 128>
    costate.group "block.sync"() : () -> ()
    %old = costate.shared_update "add" %v, %a[%k] : !costate.local<f32, 128>
    %w = costate.group "warp.shuffle_down"(%mask, %old, %one) : (i32, f32, i32) -> f32
    costate.store %w, %x[%i] : !costate.array<f32, 1>
  }
}
