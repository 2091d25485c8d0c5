// RUN: costate-opt %s --gather-additions --split-input-file | FileCheck %s

// Two neighbours inside of a row: an element gets all that is added to it at
// once, in the order of the work items, before the adjoint of what was stored
// is cleared.
// CHECK-LABEL: costate.kernel @inside
// CHECK:         %[[M:.*]] = costate.extent %arg0[0]
// CHECK:         %[[N:.*]] = arith.subi %[[M]], %c2_i64
// CHECK:         %[[HIGH:.*]] = arith.addi %[[M]], %c-2_i64
// CHECK:         costate.range (%[[E:.*]]) in (%[[M]]) attributes {costate.gather} {
// CHECK:           %[[FROM:.*]] = arith.cmpi sge, %[[E]], %c2_i64 : i64
// CHECK:           %[[TO:.*]] = arith.cmpi slt, %[[E]], %[[HIGH]] : i64
// CHECK:           %[[INSIDE:.*]] = arith.andi %[[FROM]], %[[TO]]
// CHECK:           scf.if %[[INSIDE]] {
// CHECK:             %[[UP:.*]] = arith.addi %[[E]], %c1_i64 : i64
// CHECK:             %[[A:.*]] = costate.load %arg2[%[[UP]]]
// CHECK:             %[[DOWN:.*]] = arith.addi %[[E]], %c-1_i64 : i64
// CHECK:             %[[B:.*]] = costate.load %arg2[%[[DOWN]]]
// CHECK:             %[[OLD:.*]] = costate.load %arg1[%[[E]]]
// CHECK:             %[[S:.*]] = arith.addf %[[OLD]], %[[B]] : f64
// CHECK:             %[[T:.*]] = arith.addf %[[S]], %[[A]] : f64
// CHECK-NEXT:        costate.store %[[T]], %arg1[%[[E]]]
// CHECK:           } else {
// CHECK:             %[[X:.*]]:2 = scf.if %{{.*}} -> (f64, i1) {
// CHECK:               costate.load %arg2
// CHECK:             } else {
// CHECK:               arith.constant -0.000000e+00 : f64
// CHECK:             %[[Y:.*]]:2 = scf.if %{{.*}} -> (f64, i1) {
// CHECK:             %[[ANY:.*]] = arith.ori %[[Y]]#1, %[[X]]#1 : i1
// CHECK:             scf.if %[[ANY]] {
// CHECK:               %[[OLD:.*]] = costate.load %arg1[%[[E]]]
// CHECK:               %[[S:.*]] = arith.addf %[[OLD]], %[[Y]]#0 : f64
// CHECK:               %[[T:.*]] = arith.addf %[[S]], %[[X]]#0 : f64
// CHECK-NEXT:          costate.store %[[T]], %arg1[%[[E]]]
// CHECK:           } {costate.interior}
// CHECK:         costate.range (%[[I:.*]]) in (%[[N]]) {
// CHECK-NOT:       costate.atomic_add
// CHECK:           costate.store %{{.*}}, %arg2
costate.kernel @inside(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %m = costate.extent %x[0] : !costate.array<f64, 1>
  %n = arith.subi %m, %c2 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %k = arith.addi %i, %c2 : i64
    tape.pivot
    %g = costate.load %gy[%j] : !costate.array<f64, 1>
    costate.store %zero, %gy[%j] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
  }
}

// -----

// A remainder: the work item that comes round, and one division less.
// CHECK-LABEL: costate.kernel @periodic
// CHECK:         costate.range (%[[E:.*]]) in (%{{.*}}) attributes {costate.gather} {
// CHECK-NOT:       costate.rem
// CHECK:           scf.if
// CHECK:             %[[DOWN:.*]] = arith.addi %[[E]], %c-1_i64 : i64
// CHECK:             costate.load %arg2[%[[DOWN]]]
// CHECK:           } else {
// CHECK:             %[[LAST:.*]] = arith.addi %[[E]], %c15_i64 : i64
// CHECK:           } {costate.interior}
costate.kernel @periodic(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  %n = arith.constant 16 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %k = costate.rem %j, %n : i64
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
  }
}

// -----

// A clamped index: two work items come to the last element. Whether extents
// allow that is asked before.
// CHECK-LABEL: costate.kernel @clamped
// CHECK:         scf.if %{{.*}} {
// CHECK:           costate.range (%[[E:.*]]) in (%{{.*}}) attributes {costate.gather} {
// CHECK-COUNT-4:     scf.if %{{.*}} -> (f64, i1)
// CHECK:           } {costate.interior}
// CHECK:           costate.range
// CHECK-NOT:         costate.atomic_add
// CHECK:         } else {
// CHECK-NOT:       costate.gather
// CHECK-COUNT-2:   costate.atomic_add %
costate.kernel @clamped(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 1 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  %n = costate.extent %y[0] : !costate.array<f64, 1>
  %m = costate.extent %x[0] : !costate.array<f64, 1>
  %last = arith.subi %m, %c1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %k = arith.minsi %j, %last : i64
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
  }
}

// -----

// Conditions around additions: known to hold in the interior; elsewhere they
// are bounds of the work items, which are asked for where some element is
// beyond them.
// CHECK-LABEL: costate.kernel @one_sided
// CHECK:         costate.range (%[[E:.*]]) in (%c9_i64) attributes {costate.gather} {
// CHECK:           scf.if %{{.*}} {
// CHECK-NOT:         scf.if
// CHECK:             costate.store %{{.*}}, %arg1[%[[E]]]
// CHECK:           } else {
// CHECK-NEXT:        costate.load %arg2[%[[E]]]
// CHECK:             %[[ITEM:.*]] = arith.addi %[[E]], %c1_i64
// CHECK-NEXT:        %[[THERE:.*]] = arith.cmpi slt, %[[ITEM]], %c9_i64
// CHECK-NEXT:        scf.if %[[THERE]]
// CHECK-NOT:         arith.cmpi
// CHECK:           } {costate.interior}
costate.kernel @one_sided(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = arith.constant 9 : i64
  costate.range (%i) in (%n) {
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    %has = arith.cmpi sgt, %i, %c0 : i64
    scf.if %has {
      %k = arith.subi %i, %c1 : i64
      costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
    }
  }
}

// -----

// An index that is reflected: work items 0 and 2 come to element 1.
// CHECK-LABEL: costate.kernel @mirrored
// CHECK:         costate.range (%[[E:.*]]) in (%c9_i64) attributes {costate.gather} {
// CHECK:           } else {
// CHECK:             %[[AT:.*]] = arith.cmpi eq, %[[E]], %c1_i64 : i64
// CHECK:           } {costate.interior}
costate.kernel @mirrored(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %c1 = arith.constant 1 : i64
  %n = arith.constant 9 : i64
  costate.range (%i) in (%n) {
    %j = arith.subi %i, %c1 : i64
    %k = math.absi %j : i64
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
  }
}

// -----

// What is left alone.

// The adjoint has been cleared before.
// CHECK-LABEL: costate.kernel @cleared
// CHECK-NOT:     costate.gather
costate.kernel @cleared(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%j] : !costate.array<f64, 1>
  }
}

// Work items add to what others load.
// CHECK-LABEL: costate.kernel @loaded
// CHECK-NOT:     costate.gather
costate.kernel @loaded(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %g = costate.load %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%j] : !costate.array<f64, 1>
  }
}

// Indices from memory, sums of indices, and one that many work items share.
// CHECK-LABEL: costate.kernel @scattered
// CHECK-NOT:     costate.gather
costate.kernel @scattered(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 2>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 2> {costate.adjoint_of = 0 : i64}, %n: i64) {
  costate.range (%i, %j) in (%n, %n) {
    %k = costate.load %at[%i, %j] : !costate.array<i64, 2>
    %s = arith.addi %i, %j : i64
    %g = costate.load %gy[%i, %j] : !costate.array<f64, 2>
    costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%s] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
  }
}

// Functions take longer than additions, and values of a tape are popped once.
// CHECK-LABEL: costate.kernel @expensive
// CHECK-NOT:     costate.gather
costate.kernel @expensive(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %n: i64) {
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %s1 = costate.sin %v : f64
    %s2 = costate.sin %s1 : f64
    %s3 = costate.sin %s2 : f64
    %s4 = costate.sin %s3 : f64
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    %h = arith.mulf %g, %s4 : f64
    costate.atomic_add %h, %gx[%j] : !costate.array<f64, 1>
  }
}

// The additions of a primal keep the order in which they are written down.
// CHECK-LABEL: costate.kernel @primal
// CHECK-NOT:     costate.gather
costate.kernel @primal(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %c1 = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %y[%j] : !costate.array<f64, 1>
  }
}

// -----

// An adjoint that is taken and replaced, which others follow from, stays with
// its work item.
// CHECK-LABEL: costate.kernel @replaced
// CHECK:         costate.range {{.*}} attributes {costate.gather} {
// CHECK:           costate.load %arg2
// CHECK:           costate.store %{{.*}}, %arg1
// CHECK:         costate.range
// CHECK:           costate.load %arg2
// CHECK:           costate.atomic_add exclusive %{{.*}}, %arg2
// CHECK-NOT:       costate.atomic_add
// CHECK:         costate.return
costate.kernel @replaced(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  %n = arith.constant 9 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    %h = arith.negf %g : f64
    costate.atomic_add exclusive %h, %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%j] : !costate.array<f64, 1>
  }
}

// -----

// A function that computes for long is not called again for each neighbour.
// CHECK-LABEL: costate.kernel @calls
// CHECK-NOT:     costate.gather
// CHECK:         costate.return
func.func @long(%v: f64, %n: i64) -> f64 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %v) -> (f64) : i64 {
    %t = costate.sin %s : f64
    scf.yield %t : f64
  }
  return %r : f64
}
costate.kernel @calls(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  %n = arith.constant 9 : i64
  costate.range (%i) in (%n) {
    %j = arith.addi %i, %c1 : i64
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    %h = func.call @long(%g, %n) : (f64, i64) -> f64
    costate.atomic_add %h, %gx[%i] : !costate.array<f64, 1>
    costate.atomic_add %h, %gx[%j] : !costate.array<f64, 1>
  }
}
