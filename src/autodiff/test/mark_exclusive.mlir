// RUN: costate-opt %s --mark-exclusive | FileCheck %s

// RULE: updates
// CHECK-LABEL: costate.kernel @own
// CHECK:         atomic_add exclusive
// CHECK:         atomic_add exclusive
costate.kernel @own(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 3>, %v: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %one : i64
    costate.atomic_add %v, %x[%j] : !costate.array<f64, 1>
    %w = costate.load %x[%j] : !costate.array<f64, 1>
  }
  costate.range (%i, %j) in (%n, %n) {
    costate.atomic_add %v, %m[%j, %one, %i] : !costate.array<f64, 3>
  }
}

// RULE: updates
// Another element is read, one index is missing, or several are mixed.
// CHECK-LABEL: costate.kernel @shared
// CHECK-NOT:     exclusive
costate.kernel @shared(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %z: !costate.array<f64, 1>, %v: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  costate.range (%i, %j) in (%n, %n) {
    costate.atomic_add %v, %x[%i] : !costate.array<f64, 1>
    %k = arith.addi %i, %j : i64
    costate.atomic_add %v, %z[%k] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %one : i64
    costate.atomic_add %v, %y[%j] : !costate.array<f64, 1>
    %w = costate.load %y[%i] : !costate.array<f64, 1>
  }
}

// A multiple of the index separates work items if the constants next to it
// differ by less.
// CHECK-LABEL: costate.kernel @strided
// CHECK:         costate.atomic_add exclusive %{{.*}}, %arg0
// CHECK:         costate.atomic_add exclusive %{{.*}}, %arg0
// CHECK:         costate.atomic_add %{{.*}}, %arg1
// CHECK:         costate.atomic_add %{{.*}}, %arg1
costate.kernel @strided(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %v: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  costate.range (%i) in (%n) {
    %j = arith.muli %i, %two : i64
    %k = arith.addi %j, %one : i64
    %l = arith.addi %j, %two : i64
    costate.atomic_add %v, %x[%j] : !costate.array<f64, 1>
    costate.atomic_add %v, %x[%k] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[%j] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[%l] : !costate.array<f64, 1>
  }
}

// CHECK-LABEL: costate.kernel @extrema
// CHECK:         costate.atomic_min exclusive
// CHECK:         costate.atomic_max %
costate.kernel @extrema(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>, %v: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    costate.atomic_min %v, %x[%i] : !costate.array<f64, 1>
    costate.atomic_max %v, %m[] : !costate.array<f64, 0>
  }
}
