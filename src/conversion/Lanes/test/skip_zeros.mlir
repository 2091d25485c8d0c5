// RUN: costate-opt %s --outline-ranges --form-lanes=lanes=4 | FileCheck %s

// Lanes that would add 0 run with those that add more: nothing is masked but
// what they add.
// CHECK-LABEL: llvm.func internal @together.chunk0
// CHECK:         %[[ANY:.*]] = arith.cmpf une, %{{.*}} : vector<4xf32>
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK:             %[[NONE:.*]] = arith.constant dense<-0.000000e+00>
// CHECK:             %[[ADDED:.*]] = arith.select %[[ANY]], %{{.*}}, %[[NONE]]
// CHECK:             arith.addf %{{.*}}, %[[ADDED]]
// CHECK:             llvm.store %{{.*}} : vector<4xf32>
// CHECK:             "llvm.intr.vector.reduce.fadd"
// CHECK:         llvm.intr.masked.store
costate.kernel @together(%x: !costate.array<f32, 2>, %p: !costate.array<f32, 1>, %g: !costate.array<f32, 1>, %count: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %x[1] : !costate.array<f32, 2>
  costate.range (%i) in (%size) {
    %v = costate.load %g[%i] : !costate.array<f32, 1>
    %any = arith.cmpf une, %v, %zero : f32
    scf.if %any {
      scf.for %j = %c0 to %count step %c1 : i64 {
        costate.atomic_add exclusive %v, %x[%j, %i] : !costate.array<f32, 2>
        costate.atomic_add %v, %p[%j] : !costate.array<f32, 1>
      }
    } {costate.skips_zeros}
  }
}

// One by one, only those that add more than 0 come; where loops differ in
// length, lanes that add nothing need not wait.
// CHECK-LABEL: llvm.func internal @apart.chunk0
// CHECK:         %[[ANY:.*]] = arith.cmpf une, %{{.*}} : vector<4xf32>
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK:             llvm.bitcast %[[ANY]] : vector<4xi1>
// CHECK:             llvm.intr.cttz
// CHECK:             costate.atomic_add
// CHECK:         scf.if
// CHECK:           arith.select %[[ANY]], %{{.*}} : vector<4xi1>, vector<4xi64>
// CHECK:           scf.for
costate.kernel @apart(%n: !costate.array<i64, 1>, %p: !costate.array<f32, 1>, %g: !costate.array<f32, 1>, %count: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  %size = costate.extent %g[0] : !costate.array<f32, 1>
  costate.range (%i) in (%size) {
    %v = costate.load %g[%i] : !costate.array<f32, 1>
    %to = costate.load %n[%i] : !costate.array<i64, 1>
    %any = arith.cmpf une, %v, %zero : f32
    scf.if %any {
      scf.for %j = %c0 to %count step %c1 : i64 {
        costate.atomic_add %v, %p[%to] : !costate.array<f32, 1>
      }
    } {costate.skips_zeros}
    scf.if %any {
      scf.for %j = %c0 to %to step %c1 : i64 {
        costate.atomic_add %v, %p[%j] : !costate.array<f32, 1>
      }
    } {costate.skips_zeros}
  }
}
