// RUN: costate-opt %s --choose-remainders | FileCheck %s
// RUN: costate-opt %s --choose-remainders=splits | FileCheck %s --check-prefix=SPLIT

// Where the index is below the divisor, neighbours before and behind are
// choices. The interior along the last index is there once more, without.
// CHECK-LABEL: costate.kernel @torus
// CHECK:         %[[LAST:.*]] = arith.addi %[[N:.*]], %c-1_i64
// CHECK-NOT:     scf.if
// CHECK:         costate.range (%[[I:.*]], %[[J:.*]]) in (%[[N]], %[[M:.*]]) {
// CHECK:           %[[IS:.*]] = arith.cmpi sge, %[[I]], %[[LAST]]
// CHECK:           %[[A:.*]] = arith.select %[[IS]]
// CHECK:           %[[IS:.*]] = arith.cmpi sge, %[[J]], %c1_i64
// CHECK:           %[[B:.*]] = arith.select %[[IS]]
// CHECK-NOT:       costate.rem
// CHECK:           costate.load %arg0[%[[A]], %[[J]]]
// CHECK:           costate.load %arg0[%[[I]], %[[B]]]
// SPLIT-LABEL: costate.kernel @torus
// SPLIT:         costate.range (%[[I:.*]], %[[J:.*]]) in (%{{.*}}, %[[M:.*]]) {
// SPLIT:           %[[A:.*]] = arith.select
// SPLIT:           %[[B:.*]] = arith.select
// SPLIT:           %[[LOW:.*]] = arith.cmpi sge, %[[J]], %c1_i64
// SPLIT:           %[[HIGH:.*]] = arith.cmpi slt, %[[J]], %[[M]]
// SPLIT:           %[[IN:.*]] = arith.andi %[[LOW]], %[[HIGH]]
// SPLIT:           scf.if %[[IN]] {
// SPLIT:             %[[BESIDE:.*]] = arith.addi %[[J]], %c-1_i64
// SPLIT:             costate.load %arg0[%[[A]], %[[J]]]
// SPLIT:             costate.load %arg0[%[[I]], %[[BESIDE]]]
// SPLIT:             costate.store
// SPLIT:           } else {
// SPLIT:             costate.load %arg0[%[[A]], %[[J]]]
// SPLIT:             costate.load %arg0[%[[I]], %[[B]]]
// SPLIT:             costate.store
// SPLIT:           } {costate.interior}
costate.kernel @torus(%x: !costate.array<f64, 2>, %y: !costate.array<f64, 2>) {
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  %before = arith.subi %m, %c1 : i64
  costate.range (%i, %j) in (%n, %m) {
    %a = arith.addi %i, %c1 : i64
    %b = costate.rem %a, %n : i64
    %v = costate.load %x[%b, %j] : !costate.array<f64, 2>
    %c = arith.addi %j, %before : i64
    %d = costate.rem %c, %m : i64
    %w = costate.load %x[%i, %d] : !costate.array<f64, 2>
    %s = arith.addf %v, %w : f64
    costate.store %s, %y[%i, %j] : !costate.array<f64, 2>
  }
}

// What has to be asked first: whether the extent is at most the divisor, and
// that sums do not wrap around. Otherwise remainders stay.
// CHECK-LABEL: costate.kernel @asked
// CHECK:         arith.cmpi sge
// CHECK:         arith.cmpi sge
// CHECK:         arith.cmpi sge
// CHECK:         scf.if
// CHECK:           costate.range
// CHECK-NOT:         costate.rem
// CHECK:         } else {
// CHECK:           costate.range
// CHECK:             costate.rem
// CHECK-NOT:     scf.if
costate.kernel @asked(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %c2 = arith.constant 2 : i64
  %e = costate.extent %y[0] : !costate.array<f64, 1>
  %before = arith.subi %n, %c2 : i64
  costate.range (%i) in (%e) {
    %a = arith.addi %i, %before : i64
    %b = costate.rem %a, %n : i64
    %v = costate.load %x[%b] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
}

// A modulus that is rounded down, as in Python, is one choice.
// CHECK-LABEL: costate.kernel @floor
// CHECK:         costate.range
// CHECK-NOT:       costate.rem
// CHECK:           arith.select
// CHECK-NOT:       arith.select
// CHECK:           costate.store
costate.kernel @floor(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %c0 = arith.constant 0 : i64
  %c-1 = arith.constant -1 : i64
  %c100 = arith.constant 100 : i64
  costate.range (%i) in (%c100) {
    %a = arith.addi %i, %c-1 : i64
    %r = costate.rem %a, %c100 : i64
    %is = arith.cmpi slt, %r, %c0 : i64
    %up = arith.addi %r, %c100 : i64
    %b = arith.select %is, %up, %r : i64
    %v = costate.load %x[%b] : !costate.array<f64, 1>
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
}

// In a branch a choice stands where the remainder did, and additions that are
// not exclusive are not there twice.
// CHECK-LABEL: costate.kernel @branch
// CHECK:         costate.range
// CHECK:           scf.if
// CHECK:             arith.select
// SPLIT-LABEL: costate.kernel @branch
// SPLIT-NOT:     costate.interior
// SPLIT:         costate.return
costate.kernel @branch(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %u = costate.load %x[%i] : !costate.array<f64, 1>
    %is = arith.cmpf ogt, %u, %zero : f64
    scf.if %is {
      %a = arith.addi %i, %c1 : i64
      %b = costate.rem %a, %n : i64
      %v = costate.load %x[%b] : !costate.array<f64, 1>
      costate.store %v, %y[%i] : !costate.array<f64, 1>
    }
  }
  costate.range (%i) in (%n) {
    %a = arith.addi %i, %c1 : i64
    %b = costate.rem %a, %n : i64
    %v = costate.load %x[%b] : !costate.array<f64, 1>
    costate.atomic_add %v, %s[] : !costate.array<f64, 0>
  }
}

// Neither unsigned ones, nor those of other numbers than indices, of more than
// a neighbour, by a divisor of each work item, or in ranges with loops.
// CHECK-LABEL: costate.kernel @others
// CHECK-NOT:     scf.if
// CHECK:         costate.range
// CHECK:           costate.rem unsigned
// CHECK:           costate.rem %{{.*}}, %{{.*}} : i64
// CHECK:           costate.rem %{{.*}}, %{{.*}} : i64
// CHECK:           costate.rem %{{.*}}, %{{.*}} : i64
// CHECK:         costate.range
// CHECK:           costate.rem %{{.*}}, %{{.*}} : i64
// CHECK:           scf.for
costate.kernel @others(%at: !costate.array<i64, 1>, %y: !costate.array<i64, 2>, %s: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %n = costate.extent %y[1] : !costate.array<i64, 2>
  costate.range (%i) in (%n) {
    %a = arith.addi %i, %c1 : i64
    %b = costate.rem unsigned %a, %n : i64
    %k = costate.load %at[%i] : !costate.array<i64, 1>
    %c = costate.rem %k, %n : i64
    %e = arith.addi %i, %s : i64
    %d = costate.rem %e, %n : i64
    %f = costate.rem %a, %k : i64
    costate.store %b, %y[%c0, %i] : !costate.array<i64, 2>
    costate.store %c, %y[%c1, %i] : !costate.array<i64, 2>
    costate.store %d, %y[%c2, %i] : !costate.array<i64, 2>
    costate.store %f, %y[%c3, %i] : !costate.array<i64, 2>
  }
  costate.range (%i) in (%n) {
    %a = arith.addi %i, %c1 : i64
    %b = costate.rem %a, %n : i64
    scf.for %j = %c0 to %n step %c1 : i64 {
      costate.store %b, %y[%j, %i] : !costate.array<i64, 2>
    }
  }
}
