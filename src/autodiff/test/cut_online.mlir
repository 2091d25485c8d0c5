// RUN: costate-opt %s --differentiate-reverse=by-budget --canonicalize --cse | FileCheck %s

// A `while` within a budget is cut as it runs. The forward sweep runs each
// iteration once, in a loop that stops after a segment; it saves what the
// segment began with and how many iterations it had. The reverse sweep divides
// that number further, into one part if it fits.
// CHECK-LABEL: costate.kernel @newton.grad
// CHECK:         %[[BUDGET:.*]] = tape.budget
// CHECK:         %[[ALL:.*]]:2 = scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %true, %{{.*}} = %c0_i64) : (f64, i1, i64) -> (f64, i64)
// CHECK:         ^bb0(%[[A:.*]]: f64, %{{.*}}: i64):
// CHECK:           %[[LENGTH:.*]] = costate.to_int
// CHECK-NEXT:      %[[AHEAD:.*]]:3 = scf.while (%{{.*}} = %[[A]], %[[K:.*]] = %c0_i64)
// CHECK:             %[[MORE:.*]] = arith.cmpf ogt
// CHECK-NEXT:        %[[SHORT:.*]] = arith.cmpi slt, %[[K]], %[[LENGTH]]
// CHECK-NEXT:        %[[GOES_ON:.*]] = arith.andi %[[MORE]], %[[SHORT]]
// CHECK-NEXT:        scf.condition(%[[GOES_ON]]) %{{.*}}, %[[K]], %[[MORE]] : f64, i64, i1
// CHECK:           } attributes {costate.counts}
// CHECK-NOT:       scf.for
// CHECK:           tape.push record([[N:[0-9]+]]) %[[A]], %[[AHEAD]]#1 : f64, i64
// CHECK-NEXT:      scf.yield %[[AHEAD]]#0, %[[AHEAD]]#2, %{{.*}} : f64, i1, i64
// CHECK-NEXT:    } attributes {costate.rerun, tape.pair = [[P:[0-9]+]] : i64}
// CHECK:         tape.pivot
// CHECK:         scf.for %{{.*}} = %c0_i64 to %[[ALL]]#1 step
// CHECK:           %[[STATE:.*]]:2 = tape.pop record([[N]]) : f64, i64
// CHECK:           scf.for %{{.*}} iter_args(%{{.*}} = %[[STATE]]#0)
// CHECK:           } {costate.rerun, costate.segment
// CHECK:         } {costate.rerun, tape.pair = [[P]] : i64}
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
    }
    costate.store %r, %y[%i] : !costate.array<f64, 1>
  }
}

// A private array that the loop changes is saved element by element before a
// segment runs ahead.
// CHECK-LABEL: costate.kernel @state.grad
// CHECK:         scf.while
// CHECK:           scf.for
// CHECK-NEXT:        %[[V:.*]] = costate.local_load %[[LOCAL:.*]][
// CHECK-NEXT:        tape.push record([[M:[0-9]+]]) %[[V]] : f64
// CHECK:           scf.while
// CHECK:             costate.local_store %{{.*}}, %[[LOCAL]]
// CHECK:           } attributes {costate.counts}
// CHECK-NOT:       costate.local_store
// CHECK:         } attributes {costate.rerun
// CHECK:         tape.pivot
// CHECK:         tape.pop record([[M]]) : f64
costate.kernel @state(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %half = arith.constant 0.5 : f64
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f64, 4>
    %s = costate.load %x[%i] : !costate.array<f64, 1>
    costate.local_store %s, %a[%zero] : !costate.local<f64, 4>
    scf.while : () -> () {
      %v = costate.local_load %a[%zero] : !costate.local<f64, 4>
      %c = arith.cmpf ogt, %v, %half : f64
      scf.condition(%c)
    } do {
      %v = costate.local_load %a[%zero] : !costate.local<f64, 4>
      %w = costate.sin %v : f64
      costate.local_store %w, %a[%zero] : !costate.local<f64, 4>
      scf.yield
    }
    %r = costate.local_load %a[%zero] : !costate.local<f64, 4>
    costate.store %r, %x[%i] : !costate.array<f64, 1>
  }
}
