// RUN: costate-opt %s --outline-ranges --form-lanes=lanes=4 | FileCheck %s

// A short side runs for the lanes that do not take it, too; loads of neighbours
// have a mask. Where the other side is long, only that waits for a lane.
// CHECK-LABEL: llvm.func internal @short.chunk0
// CHECK:         %[[TAKEN:.*]] = arith.cmpf ogt
// CHECK-NOT:     llvm.bitcast
// CHECK:         llvm.intr.masked.load %{{.*}}, %[[TAKEN]],
// CHECK:         arith.select %[[TAKEN]]
// CHECK:         llvm.bitcast %{{.*}} : vector<4xi1> to i4
// CHECK:         scf.if
// CHECK:           costate.sin
// CHECK:         llvm.store
costate.kernel @short(%x: !costate.array<f32, 1>, %y: !costate.array<f32, 1>, %at: !costate.array<i64, 1>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %taken = arith.cmpf ogt, %v, %zero : f32
    %r = scf.if %taken -> f32 {
      %k = arith.addi %i, %c1 : i64
      %w = costate.load %y[%k] : !costate.array<f32, 1>
      scf.yield %w : f32
    } else {
      scf.yield %zero : f32
    }
    %other = arith.cmpf ogt, %r, %v : f32
    %s = scf.if %other -> f32 {
      %t = costate.sin %r : f32
      scf.yield %t : f32
    } else {
      scf.yield %r : f32
    }
    costate.store %s, %x[%i] : !costate.array<f32, 1>
  }
}

// What all lanes share, or is gathered, is not loaded for nobody.
// CHECK-LABEL: llvm.func internal @elsewhere.chunk0
// CHECK:         llvm.bitcast %{{.*}} : vector<4xi1> to i4
// CHECK:         scf.if
// CHECK:           costate.load %{{.*}}[%{{.*}}] : !costate.array<f32, 1>
costate.kernel @elsewhere(%x: !costate.array<f32, 1>, %y: !costate.array<f32, 1>, %at: i64) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %taken = arith.cmpf ogt, %v, %zero : f32
    %r = scf.if %taken -> f32 {
      %w = costate.load %y[%at] : !costate.array<f32, 1>
      scf.yield %w : f32
    } else {
      scf.yield %zero : f32
    }
    costate.store %r, %x[%i] : !costate.array<f32, 1>
  }
}
