// RUN: costate-opt %s --outline-ranges --form-lanes=bits=256 | FileCheck %s

// Where lanes are added up, there are those of two vectors.
// CHECK-LABEL: llvm.func internal @up.chunk0
// CHECK-SAME:    costate.vector_lanes = 8
costate.kernel @up(%x: !costate.array<f64, 2>, %p: !costate.array<f64, 1>, %count: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%i) in (%size) {
    scf.for %j = %c0 to %count step %c1 : i64 {
      %v = costate.load %x[%j, %i] : !costate.array<f64, 2>
      %w = arith.mulf %v, %v : f64
      costate.atomic_add %w, %p[%j] : !costate.array<f64, 1>
    }
  }
}

// Each element its own: those of one.
// CHECK-LABEL: llvm.func internal @own.chunk0
// CHECK-SAME:    costate.vector_lanes = 4
costate.kernel @own(%x: !costate.array<f64, 2>, %p: !costate.array<f64, 2>, %count: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%i) in (%size) {
    scf.for %j = %c0 to %count step %c1 : i64 {
      %v = costate.load %x[%j, %i] : !costate.array<f64, 2>
      %w = arith.mulf %v, %v : f64
      costate.atomic_add exclusive %w, %p[%j, %i] : !costate.array<f64, 2>
    }
  }
}
