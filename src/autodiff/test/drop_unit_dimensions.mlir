// RUN: costate-opt %s --drop-unit-dimensions | FileCheck %s

// CHECK-LABEL: costate.kernel @middle(
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK:         costate.range (%[[I:.*]], %[[K:.*]]) in (%{{.*}}, %{{.*}}) -> f64 attributes {costate.block_dim = 64 : i64} {
// CHECK:           costate.load %{{.*}}[%[[I]], %[[ZERO]], %[[K]]]
costate.kernel @middle(%x: !costate.array<f64, 3>, %sum: !costate.array<f64, 0>) {
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 3>
  %m = costate.extent %x[2] : !costate.array<f64, 3>
  %s = costate.range (%i, %j, %k) in (%n, %one, %m) -> (f64) attributes {costate.block_dim = 64 : i64} {
    %v = costate.load %x[%i, %j, %k] : !costate.array<f64, 3>
    costate.yield %v : f64
  }
  costate.store %s, %sum[] : !costate.array<f64, 0>
}

// One dimension remains, and work items that print keep their indices.
// CHECK-LABEL: costate.kernel @single(
// CHECK:         costate.range (%[[I:.*]]) in (%{{.*}}) {
// CHECK:         costate.range (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) {
// CHECK:           costate.print
costate.kernel @single(%x: !costate.array<f64, 2>) {
  %one = arith.constant 1 : i64
  costate.range (%i, %j) in (%one, %one) {
    %v = arith.constant 2.0 : f64
    costate.store %v, %x[%i, %j] : !costate.array<f64, 2>
  }
  costate.range (%i, %j) in (%one, %one) {
    %isFirst = arith.cmpi slt, %j, %i : i64
    scf.if %isFirst {
      costate.print "{i}" %i : i64
    }
  }
}
