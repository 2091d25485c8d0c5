// RUN: costate-opt %s --outline-ranges --form-lanes=lanes=4 | FileCheck %s
// RUN: costate-opt %s --outline-ranges --form-lanes=bits=512 | FileCheck %s --check-prefix=CHOICE

// What lanes do not share is loaded by one after the other, by those that are
// not there from a place with 0.
// CHECK-LABEL: llvm.func internal @nested.chunk0
// CHECK:         %[[NOBODYS:.*]] = llvm.alloca
// CHECK:         llvm.store %{{.*}}, %[[NOBODYS]] : i64, !llvm.ptr
// CHECK:         scf.for
// CHECK:           %[[EACH:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<4xi1>, vector<4x!llvm.ptr>
// CHECK-COUNT-4:   llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK-NOT:     llvm.intr.masked.gather

// Lanes would wait for the longest of their loops in each iteration of the outer
// one.
// CHOICE-LABEL: llvm.func internal @nested.chunk0
// CHOICE-SAME:    costate.obstacle = "lanes would take longer"
costate.kernel @nested(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c27 = arith.constant 27 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %own = costate.load %x[%i] : !costate.array<f32, 1>
    %first = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %cell = %c0 to %c27 step %c1 iter_args(%a = %zero) -> f32 : i64 {
      %number = arith.addi %first, %cell : i64
      %count = costate.load %n[%number] : !costate.array<i64, 1>
      %s = scf.for %k = %c0 to %count step %c1 iter_args(%b = %a) -> f32 : i64 {
        %j = arith.addi %first, %k : i64
        %v = costate.load %x[%j] : !costate.array<f32, 1>
        %d = arith.subf %v, %own : f32
        %d2 = arith.mulf %d, %d : f32
        %d4 = arith.mulf %d2, %d2 : f32
        %d8 = arith.mulf %d4, %d4 : f32
        %q = arith.addf %d4, %own : f32
        %t = arith.addf %b, %q : f32
        %u = arith.addf %t, %d8 : f32
        scf.yield %u : f32
      }
      scf.yield %s : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}

// The same loop alone.
// CHOICE-LABEL: llvm.func internal @alone.chunk0
// CHOICE-SAME:    costate.vector_lanes
costate.kernel @alone(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %own = costate.load %x[%i] : !costate.array<f32, 1>
    %first = costate.load %n[%i] : !costate.array<i64, 1>
    %s = scf.for %k = %c0 to %first step %c1 iter_args(%b = %zero) -> f32 : i64 {
      %j = arith.addi %first, %k : i64
      %v = costate.load %x[%j] : !costate.array<f32, 1>
      %d = arith.subf %v, %own : f32
      %d2 = arith.mulf %d, %d : f32
      %d4 = arith.mulf %d2, %d2 : f32
      %d8 = arith.mulf %d4, %d4 : f32
      %q = arith.addf %d4, %own : f32
      %t = arith.addf %b, %q : f32
      %u = arith.addf %t, %d8 : f32
      scf.yield %u : f32
    }
    costate.store %s, %x[%i] : !costate.array<f32, 1>
  }
}
