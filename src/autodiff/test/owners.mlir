// RUN: costate-opt %s --differentiate-reverse | FileCheck %s

// RULE: own-elements
// Who writes an element is forgotten, noted and asked for in front of the
// range, along the same branches.
// CHECK-LABEL: costate.kernel @neighbour.grad
// CHECK-SAME:    %[[OWNERS:arg2]]: !costate.array<i64, 1> {costate.owners_of = 1 : i64}
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           scf.if
// CHECK:             costate.store %{{.*}}, %[[OWNERS]][%[[I]]] {costate.replayed
// CHECK:           } else {
// CHECK:             costate.store %{{.*}}, %[[OWNERS]]
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:             costate.store %[[I]], %[[OWNERS]][%[[I]]]
// CHECK:             costate.store %[[I]], %[[OWNERS]][%[[I]]]
// CHECK-NOT:         costate.store
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           } else {
// CHECK:             %[[OWNER:.*]] = costate.load %[[OWNERS]]
// CHECK:             arith.cmpi eq, %[[OWNER]], %[[I]]
// CHECK:             costate.assert refuses %{{.*}}, "one work item of the range uses the element that another one writes@, so {{.*}} {costate.places = [#loc{{.*}}, #loc{{.*}}]}
// CHECK-NOT:         costate.assert
// CHECK:         tape.pivot
costate.kernel @neighbour(%x: !costate.array<f64, 0>, %out: !costate.array<f64, 1>) {
  %n = costate.extent %out[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[] : !costate.array<f64, 0>
    %first = arith.cmpi eq, %i, %zero : i64
    scf.if %first {
      costate.store %v, %out[%i] : !costate.array<f64, 1>
    } else {
      %j = arith.subi %i, %one : i64
      %w = costate.load %out[%j] : !costate.array<f64, 1>
      %s = arith.addf %w, %v : f64
      costate.store %s, %out[%i] : !costate.array<f64, 1>
    }
  }
}

// Work items are numbered row by row. Nothing has to be forgotten where all
// that is asked about is written.
// CHECK-LABEL: costate.kernel @stores.grad
// CHECK:         costate.range (%[[I:.*]], %[[J:.*]]) in (%{{.*}}, %[[M:.*]]) attributes {costate.owner_check}
// CHECK:           %[[ROW:.*]] = arith.muli %[[I]], %[[M]]
// CHECK:           %[[NUMBER:.*]] = arith.addi %[[ROW]], %[[J]]
// CHECK:           costate.store %[[NUMBER]], %{{.*}}[%{{.*}}]
// CHECK:           costate.assert refuses %{{.*}}, "several work items of the range store to this element
costate.kernel @stores(%x: !costate.array<f64, 2>, %to: !costate.array<i64, 2>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  costate.range (%i, %j) in (%n, %m) {
    %v = costate.load %x[%i, %j] : !costate.array<f64, 2>
    %k = costate.load %to[%i, %j] : !costate.array<i64, 2>
    costate.store %v, %y[%k] : !costate.array<f64, 1>
  }
}

// Nobody asks where indices tell that elements are one's own, or other than
// those that are written; or where no derivative flows.
// CHECK-LABEL: costate.kernel @certain.grad
// CHECK-NOT:     refuses
// CHECK:         costate.return
costate.kernel @certain(%x: !costate.array<f64, 2>, %at: !costate.array<i64, 1>, %t: i64, %s: !costate.array<f64, 0>,
                        %y: !costate.array<f64, 1>, %zero: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %one = arith.constant 1 : i64
  %next = arith.addi %t, %one : i64
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%t, %j] : !costate.array<f64, 2>
    costate.store %v, %x[%next, %i] : !costate.array<f64, 2>
    costate.atomic_add %v, %s[] : !costate.array<f64, 0>
    costate.store %zero, %y[%j] : !costate.array<f64, 1>
  }
}

// A product of an element of one's own has become a load and a store.
// CHECK-LABEL: costate.kernel @product.grad
// CHECK:         costate.assert refuses %{{.*}}, "`atomic_mul` has no derivative where another work item of the range writes to the element
costate.kernel @product(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %factor: f64) {
  %n = costate.extent %at[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %old = costate.atomic_fetch "mul" %factor, %x[%j] : !costate.array<f64, 1>
  }
}

// Stores of what has no derivative may meet each other, but no store of a value of a
// work item's own: they note their work items below -1, before those do.
// CHECK-LABEL: costate.kernel @mixed.grad
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           %[[COMMON:.*]] = arith.subi %c-2_i64, %[[I]]
// CHECK-NEXT:      costate.store %[[COMMON]], %[[OWNERS:.*]][%c0_i64] {costate.replayed
// CHECK-NOT:       costate.store
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-NOT:       costate.store
// CHECK:           costate.store %[[I]], %[[OWNERS]][%[[AT:.*]]] {costate.replayed
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           %[[OWNER:.*]] = costate.load %[[OWNERS]][%c0_i64]
// CHECK:           %[[MET:.*]] = arith.cmpi slt, %[[OWNER]], %c-1_i64
// CHECK:           arith.ori %{{.*}}, %[[MET]]
// CHECK:           costate.assert refuses
// CHECK:           %[[OWNER:.*]] = costate.load %[[OWNERS]][%[[AT:.*]]]
// CHECK:           %[[OWN:.*]] = arith.subi %c-2_i64, %[[I]]
// CHECK:           arith.cmpi eq, %[[OWNER]], %[[OWN]]
// CHECK:           costate.assert refuses
costate.kernel @mixed(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %first = arith.constant 0 : i64
  %none = arith.constant 0.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %j = arith.subi %n, %i : i64
    costate.store %none, %y[%first] : !costate.array<f64, 1>
    costate.store %v, %y[%j] : !costate.array<f64, 1>
  }
}

// -----

// RULE: updates
// Additions to an element and loads of another one, both found in memory: who
// adds is noted, then by the others that there are several, and loads ask.
// CHECK-LABEL: costate.kernel @added.grad
// CHECK-SAME:    %[[OWNERS:arg3]]: !costate.array<i64, 1> {costate.owners_of
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           costate.store %[[I]], %[[OWNERS]][%[[TO:.*]]] {costate.replayed
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           %[[OWNER:.*]] = costate.load %[[OWNERS]]
// CHECK:           %[[OTHER:.*]] = arith.cmpi ne, %[[OWNER]], %[[I]]
// CHECK:           scf.if %[[OTHER]] {
// CHECK:             %[[SEVERAL:.*]] = arith.constant 9223372036854775807
// CHECK:             costate.store %[[SEVERAL]], %[[OWNERS]]
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-COUNT-1:   costate.assert refuses
// CHECK-NOT:       costate.assert
// CHECK:         tape.pivot
costate.kernel @added(%from: !costate.array<i64, 1>, %to: !costate.array<i64, 1>, %x: !costate.array<f64, 1>) {
  %n = costate.extent %to[0] : !costate.array<i64, 1>
  costate.range (%i) in (%n) {
    %j = costate.load %from[%i] : !costate.array<i64, 1>
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    %k = costate.load %to[%i] : !costate.array<i64, 1>
    costate.atomic_add %v, %x[%k] : !costate.array<f64, 1>
  }
}

// -----

// RULE: own-elements
// An array without a derivative that is read to decide: loads ask. What is only
// counted does not.
// CHECK-LABEL: costate.kernel @decided.grad
// CHECK-SAME:    costate.owners_of = 2 : i64
// CHECK-NOT:     costate.owners_of
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           costate.store %[[I]], %{{.*}}[%[[I]]] {costate.replayed
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK-COUNT-1:   costate.assert refuses
// CHECK-NOT:       costate.assert
// CHECK:         tape.pivot
costate.kernel @decided(%at: !costate.array<i64, 1>, %x: !costate.array<f64, 1>, %mark: !costate.array<i32, 1>, %count: !costate.array<i32, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %at[0] : !costate.array<i64, 1>
  %one = arith.constant 1 : i32
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    %c = costate.load %count[%j] : !costate.array<i32, 1>
    costate.store %c, %count[%i] : !costate.array<i32, 1>
    %m = costate.load %mark[%j] : !costate.array<i32, 1>
    %is = arith.cmpi slt, %m, %one : i32
    scf.if %is {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %s = arith.mulf %v, %v : f64
      costate.atomic_add %s, %y[%i] : !costate.array<f64, 1>
    }
    costate.store %one, %mark[%i] : !costate.array<i32, 1>
  }
}
