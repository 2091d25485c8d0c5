// RUN: costate-opt %s --differentiate-reverse='by-budget measured' --canonicalize --cse | FileCheck %s

// Where the tape is measured before it runs, the forward sweep tells what a
// segment saves when it runs again: the iterations of the smallest ones, by what one
// saves in words of lanes, also if it takes only one side of its branch, and the
// states of the levels between.
// CHECK-LABEL: costate.kernel @branch.grad
// CHECK:         %[[RECORD:.*]] = arith.constant 2.400000e+01 : f64
// CHECK:         costate.range
// CHECK:           tape.budget
// CHECK:           arith.select
// CHECK:           arith.mulf %{{.*}}, %[[RECORD]] : f64
// CHECK:           %[[CLAIM:.*]] = costate.to_int
// CHECK:           scf.for
// CHECK:           } {costate.rerun, tape.pair
// CHECK-NEXT:      tape.claim %[[CLAIM]]
// CHECK-NEXT:      scf.for
// CHECK:           } {costate.rest
// CHECK-NEXT:      tape.pivot
// CHECK-NOT:       tape.claim
// CHECK:         costate.return
costate.kernel @branch(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %c = arith.cmpf olt, %a, %none : f64
      %s = scf.if %c -> (f64) {
        %q = costate.sin %a : f64
        %p = arith.mulf %a, %q : f64
        scf.yield %p : f64
      } else {
        scf.yield %a : f64
      }
      scf.yield %s : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A loop whose inner loop has another length in each iteration is cut as it
// runs: a loop ahead adds up what iterations will save, with the schedule of the
// inner loop, and stops where the next one has no room. The segment claims that.
// CHECK-LABEL: costate.kernel @nest.grad
// CHECK:         costate.range
// CHECK:           tape.budget
// CHECK:           scf.while
// CHECK:             %[[ROOM:.*]] = costate.to_int
// CHECK-NEXT:        %[[TALLY:.*]] = costate.local : !costate.local<i64, 2>
// CHECK:             %[[AHEAD:.*]]:4 = scf.while
// CHECK:               arith.cmpi sle, %{{.*}}, %[[ROOM]]
// CHECK:               scf.condition
// CHECK:               costate.local_load %[[TALLY]][%c0_i64]
// CHECK:               scf.for
// CHECK:               costate.local_store %{{.*}}, %[[TALLY]][%c0_i64]
// CHECK:             } attributes {costate.counts}
// CHECK-NEXT:        %[[SUM:.*]] = costate.local_load %[[TALLY]][%c0_i64]
// CHECK-NEXT:        tape.claim %[[SUM]]
// CHECK:             tape.push record({{.*}}) %{{.*}}, %{{.*}}, %[[AHEAD]]#2
// CHECK:           } attributes {costate.rerun
// CHECK:           tape.pivot
// CHECK-NOT:       tape.claim
// CHECK:           } {costate.rerun, tape.pair
// CHECK:         costate.return
costate.kernel @nest(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %m = arith.muli %k, %k : i64
      %s = scf.for %j = %zero to %m step %one iter_args(%b = %a) -> (f64) : i64 {
        %q = costate.sin %b : f64
        %p = arith.mulf %b, %q : f64
        scf.yield %p : f64
      }
      scf.yield %s : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A loop in front of the condition runs once more often than the iterations: what
// it saves is not known.
// CHECK-LABEL: costate.kernel @before.grad
// CHECK-NOT:     tape.claim
costate.kernel @before(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r:2 = scf.while (%a = %v, %k = %zero) : (f64, i64) -> (f64, i64) {
      %m = arith.muli %k, %k : i64
      %s = scf.for %j = %zero to %m step %one iter_args(%b = %a) -> (f64) : i64 {
        %q = costate.sin %b : f64
        scf.yield %q : f64
      }
      %c = arith.cmpf olt, %s, %v : f64
      scf.condition(%c) %a, %k : f64, i64
    } do {
    ^bb0(%a: f64, %k: i64):
      %q = costate.sin %a : f64
      %p = arith.mulf %a, %q : f64
      %next = arith.addi %k, %one : i64
      scf.yield %p, %next : f64, i64
    }
    costate.store %r#0, %y[%i] : !costate.array<f64, 1>
  }
}

// A loop that is not reversed claims nothing: whether it runs is not asked of
// memory that the kernel has overwritten.
// CHECK-LABEL: costate.kernel @nothing.grad
// CHECK-NOT:     tape.claim
// CHECK-NOT:     costate.load
// CHECK:         costate.return
costate.kernel @nothing(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 0>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %c = arith.cmpf olt, %v, %none : f64
    scf.if %c {
      scf.for %k = %zero to %n step %one : i64 {
        costate.atomic_add %none, %y[] : !costate.array<f64, 0>
      }
    }
    costate.store %none, %x[%i] : !costate.array<f64, 1>
  }
}

// It claims what is saved when it runs again, also if the forward sweep saves nothing.
// CHECK-LABEL: costate.kernel @again.grad
// CHECK:         tape.claim
// CHECK:         tape.pivot
// CHECK:         tape.push
costate.kernel @again(%x: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %five = arith.constant 5 : i64
  %none = arith.constant 0.0 : f64
  %last = scf.while (%k = %zero) : (i64) -> i64 {
    %more = arith.cmpi ult, %k, %five : i64
    scf.condition(%more) %k : i64
  } do {
  ^bb0(%k: i64):
    %same = arith.muli %k, %one : i64
    %more = arith.addi %same, %zero : i64
    %i = costate.rem unsigned %more, %three : i64
    costate.store %none, %x[%i] : !costate.array<f64, 1>
    %next = arith.addi %k, %one : i64
    scf.yield %next : i64
  }
}

// What a loop with checkpoints in another one saves is added up as well, where its
// iterations may save different amounts.
// CHECK-LABEL: costate.kernel @asked.grad
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[TALLY:.*]] = costate.local : !costate.local<i64, 2>
// CHECK:             scf.for
// CHECK:               costate.local_store %{{.*}}, %[[TALLY]]
// CHECK:             } {costate.segment
// CHECK-NEXT:        %[[SUM:.*]] = costate.local_load %[[TALLY]]
// CHECK-NEXT:        tape.claim %[[SUM]]
// CHECK:           } {costate.checkpoints = 4 : i64, costate.rerun
// CHECK-NEXT:      scf.for
// CHECK:           } {costate.rest
// CHECK-NOT:     tape.claim
// CHECK:         costate.return
costate.kernel @asked(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %s = scf.for %j = %zero to %k step %one iter_args(%b = %a) -> (f64) : i64 {
        %c = arith.cmpf olt, %b, %none : f64
        %t = scf.if %c -> (f64) {
          %q = costate.sin %b : f64
          %p = arith.mulf %b, %q : f64
          scf.yield %p : f64
        } else {
          scf.yield %b : f64
        }
        scf.yield %t : f64
      } {costate.checkpoints = 4 : i64}
      scf.yield %s : f64
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}
