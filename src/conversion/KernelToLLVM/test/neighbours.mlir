// RUN: costate-opt %s --outline-ranges --convert-scf-to-cf --convert-kernel-to-llvm | FileCheck %s

// Adjoints have the extents of their array, so that one number of an element
// serves both; those of neighbours are further by what all work items share.
// CHECK-LABEL: llvm.func @step.entry(
// CHECK:         llvm.getelementptr inbounds %arg2[2]
// CHECK-NOT:     %arg2[4]
// CHECK-NOT:     %arg2[5]
// CHECK-LABEL: llvm.func internal @step.chunk0(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[a-z0-9]*}}: i64, %[[M:[a-z0-9]*]]: i64, %[[GX:[a-z0-9]*]]: !llvm.ptr {llvm.noalias})
// CHECK:         %[[ROW:.*]] = llvm.mul %[[I:.*]], %[[M]] overflow<nsw>
// CHECK:         %[[HERE:.*]] = llvm.add %[[ROW]], %[[J:.*]] overflow<nsw>
// CHECK:         %[[BESIDE:.*]] = llvm.getelementptr %[[X]][%[[HERE]]]
// CHECK:         %[[BACK:.*]] = llvm.mul %{{.*}}, %[[M]] overflow<nsw>
// CHECK:         %[[FURTHER:.*]] = llvm.add %[[BACK]], %{{.*}} overflow<nsw>
// CHECK:         %[[PLACE:.*]] = llvm.getelementptr %[[BESIDE]][%[[FURTHER]]]
// CHECK:         llvm.load %[[PLACE]]
// CHECK:         llvm.getelementptr inbounds %[[GX]]
costate.kernel @step(%x: !costate.array<f32, 2>, %gx: !costate.array<f32, 2> {costate.adjoint_of = 0 : i64}) {
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f32, 2>
  %m = costate.extent %gx[1] : !costate.array<f32, 2>
  costate.range (%i, %j) in (%n, %m) {
    %c-1 = arith.constant -1 : i64
    %k = arith.addi %i, %c-1 : i64
    %l = arith.addi %j, %c1 : i64
    %v = costate.load %x[%k, %l] : !costate.array<f32, 2>
    costate.store %v, %gx[%i, %j] : !costate.array<f32, 2>
  }
}

// Extents that are known are constants, for adjoints too.
// CHECK-LABEL: llvm.func @points.entry(
// CHECK:         llvm.getelementptr inbounds %arg2[1]
// CHECK-NOT:     %arg2[2]
// CHECK-LABEL: llvm.func internal @points.chunk0(
// CHECK-SAME:    !llvm.ptr {llvm.noalias, llvm.readonly}, %{{[a-z0-9]*}}: i64, %{{[a-z0-9]*}}: !llvm.ptr {llvm.noalias}) attributes
// CHECK-DAG:     %[[THREE:.*]] = llvm.mlir.constant(3 : i64)
// CHECK:         llvm.mul %{{.*}}, %[[THREE]] overflow<nsw>
costate.kernel @points(%x: !costate.array<f32, 2> {costate.extents = array<i64: -1, 3>}, %gx: !costate.array<f32, 2> {costate.adjoint_of = 0 : i64}) {
  %n = costate.extent %x[0] : !costate.array<f32, 2>
  costate.range (%i) in (%n) {
    %c1 = arith.constant 1 : i64
    %v = costate.load %x[%i, %c1] : !costate.array<f32, 2>
    costate.store %v, %gx[%i, %c1] : !costate.array<f32, 2>
  }
}

// Tangents in several directions have an extent more.
// CHECK-LABEL: llvm.func @curves.entry(
// CHECK:         llvm.getelementptr inbounds %arg2[3]
// CHECK:         llvm.getelementptr inbounds %arg2[4]
costate.kernel @curves(%x: !costate.array<f32, 1>, %tx: !costate.array<f32, 2> {costate.tangent_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f32
  %n = costate.extent %tx[0] : !costate.array<f32, 2>
  %m = costate.extent %tx[1] : !costate.array<f32, 2>
  costate.range (%i, %j) in (%n, %m) {
    costate.store %zero, %tx[%i, %j] : !costate.array<f32, 2>
  }
}

// Nor do dimensions of one element count, if each index is a constant.
// CHECK-LABEL: llvm.func internal @environments.chunk0(
// CHECK-NOT:     llvm.mul
// CHECK:         llvm.getelementptr inbounds %{{[a-z0-9]*}}[%[[I:[a-z0-9]*]]]
// CHECK:         llvm.load
// CHECK:         llvm.getelementptr inbounds %{{[a-z0-9]*}}[%[[I]]]
// CHECK-LABEL: llvm.func internal @environments.chunk1(
// CHECK:         llvm.add %{{.*}}, %{{.*}} overflow<nsw>
costate.kernel @environments(%x: !costate.array<f32, 2> {costate.extents = array<i64: -1, 1>}, %gx: !costate.array<f32, 2> {costate.adjoint_of = 0 : i64}, %y: !costate.array<f32, 2> {costate.extents = array<i64: -1, 1>}, %b: i64) {
  %n = costate.extent %x[0] : !costate.array<f32, 2>
  costate.range (%i) in (%n) {
    %c0 = arith.constant 0 : i64
    %v = costate.load %x[%i, %c0] : !costate.array<f32, 2>
    costate.store %v, %gx[%i, %c0] : !costate.array<f32, 2>
  }
  costate.range (%i) in (%n) {
    %v = costate.load %y[%i, %b] : !costate.array<f32, 2>
    costate.store %v, %y[%i, %b] : !costate.array<f32, 2>
  }
}
