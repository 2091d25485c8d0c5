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

// So there are for more rows of memory than are fetched ahead.
// CHECK-LABEL: llvm.func internal @rows.chunk0
// CHECK-SAME:    costate.vector_lanes = 8
costate.kernel @rows(%x: !costate.array<f64, 2>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %size = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%i) in (%size) {
    %s0 = costate.load %x[%c1, %i] : !costate.array<f64, 2>
    %v1 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s1 = arith.addf %s0, %v1 : f64
    %v2 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s2 = arith.addf %s1, %v2 : f64
    %v3 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s3 = arith.addf %s2, %v3 : f64
    %v4 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s4 = arith.addf %s3, %v4 : f64
    %v5 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s5 = arith.addf %s4, %v5 : f64
    %v6 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s6 = arith.addf %s5, %v6 : f64
    %v7 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s7 = arith.addf %s6, %v7 : f64
    %v8 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s8 = arith.addf %s7, %v8 : f64
    %v9 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s9 = arith.addf %s8, %v9 : f64
    %v10 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s10 = arith.addf %s9, %v10 : f64
    %v11 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s11 = arith.addf %s10, %v11 : f64
    %v12 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s12 = arith.addf %s11, %v12 : f64
    %v13 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s13 = arith.addf %s12, %v13 : f64
    %v14 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s14 = arith.addf %s13, %v14 : f64
    %v15 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s15 = arith.addf %s14, %v15 : f64
    %v16 = costate.load %x[%c0, %i] : !costate.array<f64, 2>
    %s16 = arith.addf %s15, %v16 : f64
    %is = arith.cmpf ogt, %s16, %zero : f64
    scf.if %is {
      costate.store %s16, %x[%c0, %i] : !costate.array<f64, 2>
    }
  }
}
