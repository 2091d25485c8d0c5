// RUN: costate-opt %s --outline-ranges --expand-tape --convert-scf-to-cf --convert-kernel-to-llvm | FileCheck %s

// Narrow elements are extended when they are loaded, with their sign, and
// truncated when they are stored. Atomic updates work on the element itself.
// CHECK-LABEL: llvm.func internal @integers.chunk0(
// CHECK:         %[[A:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:    llvm.sext %[[A]] : i8 to i32
// CHECK:         %[[B:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i16
// CHECK-NEXT:    llvm.zext %[[B]] : i16 to i32
// CHECK:         %[[C:.*]] = llvm.trunc %{{.*}} : i32 to i8
// CHECK-NEXT:    llvm.store %[[C]], %{{.*}} : i8
// CHECK:         llvm.cond_br
// CHECK:         llvm.store %{{.*}} : i16
// CHECK:         llvm.trunc %{{.*}} : i32 to i16
// CHECK-NEXT:    llvm.atomicrmw add %{{.*}}, %{{.*}} monotonic : !llvm.ptr, i16
// CHECK:         %[[D:.*]] = llvm.trunc %{{.*}} : i32 to i8
// CHECK:         llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} monotonic monotonic : !llvm.ptr, i8
costate.kernel @integers(%x: !costate.array<i8, 1>, %y: !costate.array<ui16, 1>) {
  %n = costate.extent %x[0] : !costate.array<i8, 1>
  costate.range (%i) in (%n) {
    %a = costate.load %x[%i] : !costate.array<i8, 1>
    %b = costate.load %y[%i] : !costate.array<ui16, 1>
    %c = arith.addi %a, %b : i32
    costate.store %c, %x[%i] : !costate.array<i8, 1>
    costate.atomic_add %c, %y[%i] : !costate.array<ui16, 1>
    costate.atomic_min %b, %x[%i] : !costate.array<i8, 1>
  }
}

// An f64 is rounded to an odd f32 first; the sum of an exclusive addition is
// rounded once.
// CHECK-LABEL: llvm.func internal @floats.chunk0(
// CHECK:         %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f64
// CHECK:         %[[NEAR:.*]] = llvm.fptrunc %[[X]] : f64 to f32
// CHECK:         %[[BITS:.*]] = llvm.bitcast %[[NEAR]] : f32 to i32
// CHECK:         %[[ODD:.*]] = llvm.add %[[BITS]],
// CHECK:         %[[CHOSEN:.*]] = llvm.select %{{.*}}, %[[ODD]], %[[BITS]]
// CHECK:         %[[FLOAT:.*]] = llvm.bitcast %[[CHOSEN]] : i32 to f32
// CHECK-NEXT:    %[[HALF:.*]] = llvm.fptrunc %[[FLOAT]] : f32 to f16
// CHECK-NEXT:    llvm.fpext %[[HALF]] : f16 to f32
// CHECK:         %[[OLD:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f16
// CHECK-NEXT:    %[[WIDE:.*]] = llvm.fpext %[[OLD]] : f16 to f32
// CHECK:         %[[SUM:.*]] = llvm.fadd %[[WIDE]], %{{.*}} : f32
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.fptrunc %[[SUM]] : f32 to f16
// CHECK-NEXT:    llvm.store %[[NEXT]], %{{.*}} : f16
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} monotonic : !llvm.ptr, f16
costate.kernel @floats(%x: !costate.array<f64, 1>, %y: !costate.array<f16, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %a = costate.load %x[%i] : !costate.array<f64, 1>
    %b = costate.narrow %a to f16 : f64
    costate.atomic_add exclusive %b, %y[%i] : !costate.array<f16, 1>
    costate.atomic_add %b, %y[%i] : !costate.array<f16, 1>
  }
}

// CHECK-LABEL: llvm.func internal @local.chunk0(
// CHECK:         llvm.alloca %{{.*}} x i8 {alignment = 8 : i64}
// CHECK:         %[[E:.*]] = llvm.trunc %{{.*}} : i32 to i8
// CHECK-NEXT:    llvm.store %[[E]], %{{.*}} : i8
// CHECK:         %[[F:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:    llvm.zext %[[F]] : i8 to i32
costate.kernel @local(%x: !costate.array<i32, 1>) {
  %n = costate.extent %x[0] : !costate.array<i32, 1>
  costate.range (%i) in (%n) {
    %l = costate.local : !costate.local<ui8, 5>
    %a = costate.load %x[%i] : !costate.array<i32, 1>
    costate.local_store %a, %l[%i] : !costate.local<ui8, 5>
    %b = costate.local_load %l[%i] : !costate.local<ui8, 5>
    costate.store %b, %x[%i] : !costate.array<i32, 1>
  }
}
