// RUN: costate-opt %s --forward-stores | FileCheck %s

// CHECK-LABEL: @straight
// CHECK: costate.store [[W:%.*]], %{{.*}}[
// CHECK-NOT: costate.load
// CHECK: costate.store [[W]]
costate.kernel @straight(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %w: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    costate.store %w, %x[%i] : !costate.array<f64, 1>
    %j = arith.addi %i, %c1 : i64
    costate.store %w, %y[%j] : !costate.array<f64, 1>
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
}

// Into branches and loops, unless these write the array.
// CHECK-LABEL: @nested
// CHECK: scf.if
// CHECK-NOT: costate.load %{{.*}}[%arg
// CHECK: costate.store
// CHECK: scf.for
// CHECK: costate.load
// CHECK: costate.store
costate.kernel @nested(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %w: f64, %c: i1) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    costate.store %w, %x[%i] : !costate.array<f64, 1>
    scf.if %c {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      costate.store %v, %y[%i] : !costate.array<f64, 1>
    }
    scf.for %k = %c0 to %n step %c1 : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %u = arith.addf %v, %v : f64
      costate.store %u, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// Not across a store that may hit the element, an update, or a branch that
// stores.
// CHECK-LABEL: @unknown
// CHECK-COUNT-3: costate.load %{{.*}} : !costate.array<f64, 1>
costate.kernel @unknown(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %w: f64, %c: i1) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    costate.store %w, %x[%i] : !costate.array<f64, 1>
    costate.store %w, %x[%j] : !costate.array<f64, 1>
    %a = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %a, %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %w, %x[%i] : !costate.array<f64, 1>
    %b = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %b, %x[%i] : !costate.array<f64, 1>
    scf.if %c {
      costate.store %a, %x[%i] : !costate.array<f64, 1>
    }
    %d = costate.load %x[%i] : !costate.array<f64, 1>
    costate.store %d, %y[%i] : !costate.array<f64, 1>
  }
}
