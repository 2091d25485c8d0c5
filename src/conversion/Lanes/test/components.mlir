// RUN: costate-opt %s --outline-ranges --form-lanes=lanes=4 | FileCheck %s

// Components of a vector are one piece of memory, if there are as many as the
// indices say: loads go up to the first one, stores down to the last.
// CHECK-LABEL: llvm.func internal @vectors.chunk0
// CHECK-SAME:    costate.vector_lanes = 4
// CHECK:         %[[TWO:.*]] = arith.cmpi eq, %{{.*}}, %c2_i64
// CHECK:         %[[X:.*]]:2 = scf.if %[[TWO]]
// CHECK-COUNT-2:   llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
// CHECK:           llvm.shufflevector %{{.*}} [0, 2, 4, 6]
// CHECK:           llvm.shufflevector %{{.*}} [1, 3, 5, 7]
// CHECK:         } else {
// CHECK-COUNT-2:   llvm.intr.masked.gather
// CHECK:         }
// CHECK:         scf.if
// CHECK:           llvm.shufflevector %{{.*}} [0, 4, 1, 5]
// CHECK:           llvm.shufflevector %{{.*}} [2, 6, 3, 7]
// CHECK-COUNT-2:   llvm.store %{{.*}} : vector<4xf32>
// CHECK:         } else {
// CHECK-COUNT-2:   llvm.intr.masked.scatter
costate.kernel @vectors(%x: !costate.array<f32, 2>, %y: !costate.array<f32, 2>, %z: !costate.array<f32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %z[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %a = costate.load %x[%i, %c0] : !costate.array<f32, 2>
    %b = costate.load %z[%i] : !costate.array<f32, 1>
    costate.store %b, %y[%i, %c0] : !costate.array<f32, 2>
    %c = costate.load %x[%i, %c1] : !costate.array<f32, 2>
    %s = arith.addf %a, %c : f32
    %p = arith.cmpf olt, %s, %zero : f32
    %r = scf.if %p -> f32 {
      %e = costate.exp %s : f32
      scf.yield %e : f32
    } else {
      scf.yield %s : f32
    }
    costate.store %r, %y[%i, %c1] : !costate.array<f32, 2>
  }
}

// Nothing is looked at if the extents are known. LLVM would gather the first two
// of three, so straight code has lanes as well.
// CHECK-LABEL: llvm.func internal @points.chunk0
// CHECK-SAME:    costate.vector_lanes = 4
// CHECK-NOT:     scf.if
// CHECK-COUNT-3: llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
// CHECK-NOT:     gather
costate.kernel @points(%x: !costate.array<f32, 2> {costate.extents = array<i64: -1, 3>}, %z: !costate.array<f32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %z[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %a = costate.load %x[%i, %c0] : !costate.array<f32, 2>
    %b = costate.load %x[%i, %c1] : !costate.array<f32, 2>
    %s = arith.mulf %a, %b : f32
    costate.store %s, %z[%i] : !costate.array<f32, 1>
  }
}

// Components that are not in the group stay as they are. An addition joins
// what it adds.
// CHECK-LABEL: llvm.func internal @some.chunk0
// CHECK:         arith.cmpi eq, %{{.*}}, %c3_i64
// CHECK:         scf.if
// CHECK-COUNT-3:   llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
// CHECK-COUNT-3:   arith.addf %{{.*}} : vector<4xf32>
// CHECK:           arith.constant dense<[true, false, true, true]>
// CHECK:           llvm.intr.masked.store
// CHECK:           arith.constant dense<[false, true, true, false]>
// CHECK:           llvm.intr.masked.store
// CHECK:           arith.constant dense<[true, true, false, true]>
// CHECK:           llvm.intr.masked.store
costate.kernel @some(%x: !costate.array<f32, 2>, %y: !costate.array<f32, 2>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 2>
  costate.range (%i) in (%size) {
    %a = costate.load %x[%i, %c1] : !costate.array<f32, 2>
    costate.atomic_add exclusive %a, %y[%i, %c0] : !costate.array<f32, 2>
    costate.atomic_add exclusive %a, %y[%i, %c2] : !costate.array<f32, 2>
    %p = arith.cmpf olt, %a, %zero : f32
    scf.if %p {
      %e = costate.exp %a : f32
      costate.store %e, %y[%i, %c1] : !costate.array<f32, 2>
    }
  }
}

// What is stored between two loads is not what the second one reads.
// CHECK-LABEL: llvm.func internal @between.chunk0
// CHECK:         llvm.shufflevector %{{.*}} [0, 2, 4, 6]
// CHECK-NOT:     llvm.shufflevector %{{.*}} [1, 3, 5, 7]
// CHECK:         llvm.intr.masked.store
// CHECK:         llvm.shufflevector %{{.*}} [1, 3, 5, 7]
costate.kernel @between(%x: !costate.array<f32, 2>, %z: !costate.array<f32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %z[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %a = costate.load %x[%i, %c0] : !costate.array<f32, 2>
    %b = costate.load %z[%i] : !costate.array<f32, 1>
    costate.store %b, %x[%i, %c1] : !costate.array<f32, 2>
    %c = costate.load %x[%i, %c1] : !costate.array<f32, 2>
    %s = arith.addf %a, %c : f32
    %p = arith.cmpf olt, %s, %zero : f32
    scf.if %p {
      %e = costate.exp %s : f32
      costate.store %e, %z[%i] : !costate.array<f32, 1>
    }
  }
}

// Of lanes that are not active nothing is touched. There is a 2 x 2 matrix for
// each lane.
// CHECK-LABEL: llvm.func internal @masked.chunk0
// CHECK:         scf.if
// CHECK:           %[[FIRST:.*]] = llvm.shufflevector %[[MASK:.*]], %[[MASK]] [0, 0, 0, 0] : vector<4xi1>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[FIRST]],
// CHECK:           %[[SECOND:.*]] = llvm.shufflevector %[[MASK]], %[[MASK]] [1, 1, 1, 1] : vector<4xi1>
// CHECK:           llvm.intr.masked.load %{{.*}}, %[[SECOND]],
costate.kernel @masked(%x: !costate.array<f32, 3>, %z: !costate.array<f32, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %z[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %a = costate.load %z[%i] : !costate.array<f32, 1>
    %p = arith.cmpf olt, %a, %zero : f32
    scf.if %p {
      %b = costate.load %x[%i, %c0, %c1] : !costate.array<f32, 3>
      %c = costate.load %x[%i, %c1, %c0] : !costate.array<f32, 3>
      %s = arith.addf %b, %c : f32
      %e = costate.exp %s : f32
      costate.store %e, %z[%i] : !costate.array<f32, 1>
    }
  }
}
