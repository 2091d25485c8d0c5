// RUN: costate-opt %s --mark-reductions --sum-in-ranges --outline-ranges --form-lanes=bits=512 | FileCheck %s
// RUN: costate-opt %s --mark-reductions --sum-in-ranges --outline-ranges --form-lanes=lanes=32 | FileCheck %s --check-prefix=FORCED

// A row of two work items would save for 64 lanes.
// CHECK-LABEL: llvm.func internal @saves.chunk0
// CHECK-SAME:    costate.vector_lanes = 64
// CHECK:         %[[FEW:.*]] = arith.constant 4 : i64
// CHECK:         %[[SHORT:.*]] = arith.cmpi sle, %{{.*}}, %[[FEW]] : i64
// CHECK:         scf.if %[[SHORT]] {
// CHECK:           tape.push record(0) %{{.*}} : f32
// CHECK:           tape.pop record(0) : f32
// CHECK:         } else {
// CHECK:           tape.push record(0) %{{.*}} : vector<64xf32>
// CHECK:           tape.pop record(0) : vector<64xf32>
// FORCED-LABEL: llvm.func internal @saves.chunk0
// FORCED-NOT:     tape.push record(0) %{{.*}} : f32
// FORCED:         tape.push record(0) %{{.*}} : vector<32xf32>
costate.kernel @saves(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = costate.sin %a : f32
      tape.push record(0) %a : f32
      scf.yield %s : f32
    }
    tape.pivot
    %g = scf.for %k = %c0 to %count step %c1 iter_args(%a = %r) -> f32 : i64 {
      %p = tape.pop record(0) : f32
      %c = costate.cos %p : f32
      %m = costate.strong_mul %a, %c : f32
      scf.yield %m : f32
    }
    costate.store %g, %x[%i] : !costate.array<f32, 1>
  }
}

// So would one that saves nothing in its loop take as long as 64.
// CHECK-LABEL: llvm.func internal @once.chunk0
// CHECK-SAME:    costate.vector_lanes = 64
// CHECK:         scf.if
// CHECK:           tape.push record(0) %{{.*}} : f32
// CHECK:         } else {
// CHECK:           tape.push record(0) %{{.*}} : vector<64xf32>
costate.kernel @once(%x: !costate.array<f32, 1>, %n: !costate.array<i64, 1>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %count = costate.load %n[%i] : !costate.array<i64, 1>
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%a = %v) -> f32 : i64 {
      %s = costate.sin %a : f32
      scf.yield %s : f32
    }
    tape.push record(0) %r : f32
    tape.pivot
    %p = tape.pop record(0) : f32
    %c = costate.cos %p : f32
    costate.store %c, %x[%i] : !costate.array<f32, 1>
  }
}

// What has no loop has its lanes.
// CHECK-LABEL: llvm.func internal @branch.chunk0
// CHECK-SAME:    costate.vector_lanes = 16
// CHECK-NOT:     costate.sin %{{.*}} : f32
// CHECK:         costate.sin %{{.*}} : vector<16xf32>
// CHECK-NOT:     costate.sin %{{.*}} : f32
costate.kernel @branch(%x: !costate.array<f32, 1>) {
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %x[%i] : !costate.array<f32, 1>
    %isLess = arith.cmpf olt, %v, %zero : f32
    scf.if %isLess {
      %s = costate.sin %v : f32
      costate.store %s, %x[%i] : !costate.array<f32, 1>
    }
  }
}
