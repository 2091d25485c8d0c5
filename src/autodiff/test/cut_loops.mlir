// RUN: costate-opt %s --differentiate-reverse --canonicalize --cse | FileCheck %s

// Of all segments but the end of the loop only what they begin with is saved.
// The reverse sweep takes the end first; then it runs one segment after the
// other again, with records. The sum of the adjoints of %w goes through all
// parts, in the order of a loop that is not cut.
// CHECK-LABEL: costate.kernel @iterate.grad
// CHECK:         costate.range (%[[I:.*]]) in
// CHECK:           %[[W:.*]] = costate.load %arg1
// CHECK:           %[[S:.*]] = scf.for %{{.*}} to %[[SEGMENTS:.*]] step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (f64)
// CHECK-NEXT:        %[[B:.*]] = scf.for %{{.*}} to %[[LENGTH:.*]] step
// CHECK-NOT:           tape.push
// CHECK:             } {costate.segment}
// CHECK-NEXT:        tape.push record(2) %[[A]] : f64
// CHECK-NEXT:        scf.yield %[[B]]
// CHECK-NEXT:      } {costate.checkpoints = 10 : i64, costate.rerun, tape.pair = 2 : i64}
// CHECK-NEXT:      scf.for %{{.*}} to %[[REST:.*]] step %{{.*}} iter_args(%[[C:.*]] = %[[S]]) -> (f64)
// CHECK:             tape.push record(0) %[[C]]
// CHECK:           } {costate.rest, tape.pair = 0 : i64}
// CHECK:           tape.pivot
// CHECK:           %[[R:.*]]:2 = scf.for %{{.*}} to %[[REST]] step
// CHECK-NEXT:        tape.pop record(0)
// CHECK:           } {costate.rest, tape.pair = 0 : i64}
// CHECK-NEXT:      %[[T:.*]]:2 = scf.for %{{.*}} to %[[SEGMENTS]] step %{{.*}} iter_args(%[[G:.*]] = %[[R]]#0, %[[SUM:.*]] = %[[R]]#1)
// CHECK-NEXT:        %[[D:.*]] = tape.pop record(2) : f64
// CHECK-NEXT:        scf.for %{{.*}} to %[[LENGTH]] step %{{.*}} iter_args(%[[E:.*]] = %[[D]])
// CHECK:               tape.push record(1) %[[E]]
// CHECK:             } {costate.segment, tape.pair = 1 : i64}
// CHECK-NEXT:        %[[U:.*]]:2 = scf.for %{{.*}} to %[[LENGTH]] step %{{.*}} iter_args(%{{.*}} = %[[G]], %{{.*}} = %[[SUM]])
// CHECK-NEXT:          tape.pop record(1)
// CHECK:             } {costate.segment, tape.pair = 1 : i64}
// CHECK-NEXT:        scf.yield %[[U]]#0, %[[U]]#1
// CHECK-NEXT:      } {costate.rerun, tape.pair = 2 : i64}
costate.kernel @iterate(%x: !costate.array<f64, 1>, %c: !costate.array<f64, 0>, %y: !costate.array<f64, 1>, %n: i64) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.load %c[] : !costate.array<f64, 0>
    %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      %q = costate.sin %a : f64
      %p = arith.addf %w, %q : f64
      scf.yield %p : f64
    } {costate.checkpoints = 10 : i64}
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A `while` is counted first, and is a loop of that many iterations then.
// CHECK-LABEL: costate.kernel @newton.grad
// CHECK:         %[[COUNT:.*]]:2 = scf.while
// CHECK-NOT:       tape.push
// CHECK:         } attributes {costate.counts}
// CHECK:         } {costate.checkpoints = 4 : i64, costate.rerun, tape.pair = 2 : i64}
// CHECK:         } {costate.rest, tape.pair = 0 : i64}
// CHECK:         tape.pivot
costate.kernel @newton(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %e = costate.extent %x[0] : !costate.array<f64, 1>
  %h = arith.constant 0.5 : f64
  %eps = arith.constant 1.0e-12 : f64
  costate.range (%i) in (%e) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %r = scf.while (%a = %v) : (f64) -> f64 {
      %a2 = arith.mulf %a, %a : f64
      %d = arith.subf %a2, %v : f64
      %ad = math.absf %d : f64
      %c = arith.cmpf ogt, %ad, %eps : f64
      scf.condition(%c) %a : f64
    } do {
    ^bb0(%a: f64):
      %q = arith.divf %v, %a : f64
      %s = arith.addf %a, %q : f64
      %w = arith.mulf %h, %s : f64
      scf.yield %w : f64
    } attributes {costate.checkpoints = 4 : i64}
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A private array that the loop changes is part of what a segment begins with,
// element by element; one that it only reads is saved once, and only if it may
// have changed meanwhile.
// CHECK-LABEL: costate.kernel @state.grad
// CHECK:         scf.for
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        %[[V:.*]] = costate.local_load
// CHECK-NEXT:        tape.push record([[N:[0-9]+]]) %[[V]] : f64
// CHECK:         } {costate.checkpoints = 2 : i64, costate.rerun, tape.pair = 3 : i64}
// CHECK:         tape.pivot
// CHECK:         } {costate.rest, tape.pair = 0 : i64}
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-NEXT:        %[[O:.*]] = tape.pop record([[N]]) : f64
// CHECK:             costate.local_store %[[O]]
costate.kernel @state(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 4>
    %s = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %s, %a[%zero] : !costate.local<f64, 4>
    scf.for %t = %zero to %m step %one : i64 {
      %v = costate.local_load %a[%zero] : !costate.local<f64, 4>
      %w = costate.sin %v : f64
      costate.local_store %w, %a[%zero] : !costate.local<f64, 4>
    } {costate.checkpoints = 2 : i64}
    %r = costate.local_load %a[%zero] : !costate.local<f64, 4>
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
}
