// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s
// RUN: costate-opt %s --differentiate-forward --canonicalize --cse | FileCheck %s --check-prefix=JVP
// RUN: costate-opt %s --forward-stores | FileCheck %s --check-prefix=STORED

// Adjoints and tangents of f16 are f32, and rounding has the derivative 1.
// CHECK-LABEL: costate.kernel @square.grad(
// CHECK-SAME:    !costate.array<f32, 1> {costate.adjoint_of = 0 : i64}, %{{.*}}: !costate.array<f32, 1> {costate.adjoint_of = 1 : i64}
// CHECK:         %[[V:.*]] = costate.load %{{.*}} : !costate.array<f16, 1>
// CHECK:         tape.pivot
// CHECK-NEXT:    %[[G:.*]] = costate.load %{{.*}} : !costate.array<f32, 1>
// CHECK-NEXT:    costate.store %{{.*}} : !costate.array<f32, 1>
// CHECK-NEXT:    %[[H:.*]] = costate.strong_mul %[[G]], %[[V]] : f32
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[H]], %[[H]] : f32
// CHECK-NEXT:    costate.atomic_add exclusive %[[SUM]], %{{.*}} : !costate.array<f32, 1>
// JVP-LABEL:   costate.kernel @square.jvp(
// JVP:           %[[T:.*]] = arith.addf
// JVP-NEXT:      costate.narrow
// JVP:           costate.store %[[T]], %{{.*}} : !costate.array<f32, 1>
costate.kernel @square(%x: !costate.array<f16, 1>, %y: !costate.array<f16, 1>) {
  %n = costate.extent %x[0] : !costate.array<f16, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f16, 1>
    %w = arith.mulf %v, %v : f32
    %r = costate.narrow %w to f16 : f32
    costate.store %r, %y[%i] : !costate.array<f16, 1>
  }
}

// So are those of the elements of private arrays.
// CHECK-LABEL: costate.kernel @local.grad(
// CHECK:         tape.pivot
// CHECK:         tape.pivot
// CHECK-NEXT:    costate.local : !costate.local<f32, 2>
// JVP-LABEL:   costate.kernel @local.jvp(
// JVP:           costate.local : !costate.local<f16, 2>
// JVP-NEXT:      costate.local : !costate.local<f32, 2>
costate.kernel @local(%x: !costate.array<f16, 1>, %y: !costate.array<f64, 1>, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f16, 1>
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f16, 2>
    %v = costate.load %x[%i] : !costate.array<f16, 1>
    costate.local_store %v, %a[%j] : !costate.local<f16, 2>
    %w = costate.local_load %a[%i] : !costate.local<f16, 2>
    %z = arith.extf %w : f32 to f64
    costate.store %z, %y[%i] : !costate.array<f64, 1>
  }
}

// A load of what was stored finds the number that the element became.
// STORED-LABEL: costate.kernel @stored(
// STORED:         costate.store %[[W:.*]], %{{.*}} : !costate.array<i8, 1>
// STORED-NEXT:    %[[V:.*]] = costate.narrow %[[W]] to i8 : i32
// STORED-NEXT:    costate.store %[[V]], %{{.*}} : !costate.array<i32, 1>
costate.kernel @stored(%x: !costate.array<i8, 1>, %y: !costate.array<i32, 1>, %w: i32) {
  %n = costate.extent %x[0] : !costate.array<i8, 1>
  costate.range (%i) in (%n) {
    costate.store %w, %x[%i] : !costate.array<i8, 1>
    %v = costate.load %x[%i] : !costate.array<i8, 1>
    costate.store %v, %y[%i] : !costate.array<i32, 1>
  }
}
