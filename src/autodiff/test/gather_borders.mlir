// RUN: costate-opt %s --gather-additions | FileCheck %s
// RUN: costate-opt %s --gather-additions=numbered | FileCheck %s --check-prefix=GPU

// Conditions as `i > 0 and i < n - 1` are bounds of the work items, and what
// remains is a range over those. On GPUs elements of the interior come before
// those of the border, where the nearest work items stand in for others; that
// there are some is asked before.
// CHECK-LABEL: costate.kernel @inside
// CHECK:         costate.range (%[[E:.*]]) in {{.*}} attributes {costate.gather} {
// CHECK:           } else {
// CHECK:             %[[ITEM:.*]] = arith.addi %[[E]], %c-1_i64
// CHECK-NEXT:        %[[THERE:.*]] = arith.cmpi sge, %[[ITEM]], %c1_i64
// CHECK-NEXT:        scf.if %[[THERE]]
// CHECK-NOT:         arith.cmpi sgt
// CHECK:           } {costate.interior}
// CHECK:         costate.range (%[[I:.*]]) in (%{{.*}}) {
// CHECK-NOT:       scf.if
// CHECK:           %[[ITEM:.*]] = arith.addi %[[I]], %c1_i64
// CHECK:           costate.store %{{.*}}, %arg3[%[[ITEM]]]
// GPU-LABEL: costate.kernel @inside
// GPU:         arith.cmpi sge
// GPU:         scf.if %{{.*}} {
// GPU:           arith.select
// GPU:           arith.minsi
// GPU-NEXT:      %[[FROM:.*]] = arith.maxsi
// GPU:           %[[TO:.*]] = arith.maxsi
// GPU:           %[[INSIDE:.*]] = arith.subi %[[TO]], %[[FROM]]
// GPU:           costate.range (%[[E:.*]]) in (%[[ALL:.*]]) attributes {costate.gather} {
// GPU:             %[[IS:.*]] = arith.cmpi slt, %[[E]], %[[INSIDE]]
// GPU:             scf.if %[[IS]]
// GPU:             } else {
// GPU:               %[[BELOW:.*]] = arith.minsi
// GPU:               %[[ITEM:.*]] = arith.maxsi %[[BELOW]], %c1_i64
// GPU:               %[[G:.*]] = costate.load %arg3[%[[ITEM]]]
// GPU:               arith.select %{{.*}}, %[[G]], %{{.*}}
// GPU:               scf.if
// GPU-NEXT:            costate.load %arg2
// GPU:             } {costate.interior}
// GPU:         } else {
// GPU:           costate.atomic_add
costate.kernel @inside(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 1 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %false = arith.constant false
  %n = costate.extent %y[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %low = arith.cmpi sgt, %i, %c0 : i64
    %inside = scf.if %low -> (i1) {
      %last = arith.subi %n, %c1 : i64
      %high = arith.cmpi slt, %i, %last : i64
      scf.yield %high : i1
    } else {
      scf.yield %false : i1
    }
    tape.pivot
    scf.if %inside {
      %g = costate.load %gy[%i] : !costate.array<f64, 1>
      costate.store %zero, %gy[%i] : !costate.array<f64, 1>
      %j = arith.addi %i, %c1 : i64
      %k = arith.subi %i, %c1 : i64
      costate.atomic_add %g, %gx[%j] : !costate.array<f64, 1>
      costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
    }
  }
}

// A condition that many work items have, and many do not, is asked where it
// stands: rows of the interior may be on both of its sides.
// CHECK-LABEL: costate.kernel @half
// CHECK:         costate.gather
// CHECK:           } else {
// CHECK:             arith.cmpi slt, %{{.*}}, %[[HALF:.*]] : i64
// CHECK:           } {costate.interior}
costate.kernel @half(%m: i64, %x: !costate.array<f64, 2>, %gx: !costate.array<f64, 2> {costate.adjoint_of = 1 : i64}, %gy: !costate.array<f64, 2> {costate.adjoint_of = 1 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  costate.range (%i, %j) in (%n, %n) {
    %left = arith.cmpi slt, %i, %m : i64
    %g = costate.load %gy[%i, %j] : !costate.array<f64, 2>
    costate.store %zero, %gy[%i, %j] : !costate.array<f64, 2>
    scf.if %left {
      %k = arith.addi %j, %c1 : i64
      costate.atomic_add %g, %gx[%i, %k] : !costate.array<f64, 2>
      costate.atomic_add %g, %gx[%i, %j] : !costate.array<f64, 2>
    }
  }
}

// What stands in the other side of a condition reaches no element beside the
// array, so that there are as many elements as work items. One that the first
// work item alone reaches is of the border.
// CHECK-LABEL: costate.kernel @otherwise
// CHECK:         costate.range (%[[E:.*]]) in (%c9_i64) attributes {costate.gather} {
// CHECK:           arith.cmpi sge, %[[E]], %c2_i64
// CHECK:           arith.cmpi slt, %[[E]], %c8_i64
costate.kernel @otherwise(%x: !costate.array<f64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = arith.constant 9 : i64
  costate.range (%i) in (%n) {
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    costate.atomic_add %g, %gx[%i] : !costate.array<f64, 1>
    %first = arith.cmpi eq, %i, %c0 : i64
    scf.if %first {
      %j = arith.addi %i, %c1 : i64
      costate.atomic_add %g, %gx[%j] : !costate.array<f64, 1>
    } else {
      %k = arith.subi %i, %c1 : i64
      costate.atomic_add %g, %gx[%k] : !costate.array<f64, 1>
    }
  }
}

// A comparison that is folded in place stays, and so does what asks for it.
// Of several work items for one element each is asked for on GPUs, too.
// CHECK-LABEL: costate.kernel @clamped
// CHECK:         costate.gather
// CHECK:           arith.cmpi sge, %{{.*}}, %c2_i64
// CHECK-NOT:     costate.atomic_add
// CHECK:         costate.return
// GPU-LABEL: costate.kernel @clamped
// GPU:         costate.gather
// GPU:           } else {
// GPU-NOT:         costate.load {{.*}}
// GPU:             scf.if
// GPU:           } {costate.interior}
costate.kernel @clamped(%x: !costate.array<f64, 1>, %m: !costate.array<i64, 1>, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    %count = costate.load %m[%i] : !costate.array<i64, 1>
    %few = arith.cmpi sle, %c2, %count : i64
    scf.if %few {
      %k = arith.subi %i, %c1 : i64
      %j = arith.maxsi %k, %c0 : i64
      costate.atomic_add %g, %gx[%j] : !costate.array<f64, 1>
    }
  }
}

// What only a run tells of a condition is asked for inside as well: all work
// items have `%flag` in common.
// CHECK-LABEL: costate.kernel @flagged
// CHECK:         %[[FLAG:.*]] = arith.cmpi eq
// CHECK:         costate.gather
// CHECK:           arith.select %[[FLAG]],
// CHECK:           } else {
// CHECK:             arith.select
// CHECK:           } {costate.interior}
costate.kernel @flagged(%x: !costate.array<f64, 1>, %m: i64, %gx: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}, %gy: !costate.array<f64, 1> {costate.adjoint_of = 0 : i64}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %flag = arith.cmpi eq, %m, %c0 : i64
  costate.range (%i) in (%n) {
    %g = costate.load %gy[%i] : !costate.array<f64, 1>
    costate.store %zero, %gy[%i] : !costate.array<f64, 1>
    %late = arith.cmpi sge, %i, %c1 : i64
    %both = arith.andi %late, %flag : i1
    %kept = arith.select %both, %zero, %g : f64
    %k = arith.subi %i, %c1 : i64
    %j = arith.maxsi %k, %c0 : i64
    costate.atomic_add %kept, %gx[%j] : !costate.array<f64, 1>
  }
}
