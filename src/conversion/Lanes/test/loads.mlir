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

// Elements that lie beside each other: a number for each lane, and the distance
// in the address. Lanes that are not there take the number of one that is.
// CHECK-LABEL: llvm.func internal @beside.chunk0
// CHECK:         scf.while
// CHECK:           %[[FIRST:.*]] = "llvm.intr.cttz"
// CHECK:           %[[NUMBER:.*]] = llvm.extractelement %[[ALL:.*]][%[[FIRST]]
// CHECK:           arith.select %{{.*}}, %[[ALL]], %{{.*}} : vector<4xi1>, vector<4xi64>
// CHECK-COUNT-4:   llvm.extractelement
// CHECK-NOT:       llvm.extractelement
// CHECK-COUNT-8:   llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK:           scf.yield
costate.kernel @beside(%x: !costate.array<f32, 2>, %n: !costate.array<i64, 1>) {
  %c1 = arith.constant 1 : i64
  %size = costate.extent %n[0] : !costate.array<i64, 1>
  costate.range (%i) in (%size) {
    %first = costate.load %n[%i] : !costate.array<i64, 1>
    %zero = arith.constant 0.0 : f32
    %last:2 = scf.while (%j = %first, %s = %zero) : (i64, f32) -> (i64, f32) {
      %more = arith.cmpi sgt, %j, %c1 : i64
      scf.condition(%more) %j, %s : i64, f32
    } do {
    ^bb0(%j: i64, %s: f32):
      %above = arith.addi %j, %c1 : i64
      %a = costate.load %x[%j, %i] : !costate.array<f32, 2>
      %b = costate.load %x[%above, %i] : !costate.array<f32, 2>
      %d = arith.subf %a, %b : f32
      %t = arith.addf %s, %d : f32
      %next = arith.subi %j, %c1 : i64
      scf.yield %next, %t : i64, f32
    }
    costate.store %last#1, %x[%c1, %i] : !costate.array<f32, 2>
  }
}
