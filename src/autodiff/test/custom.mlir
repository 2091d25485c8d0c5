// RUN: costate-opt %s --differentiate-reverse | FileCheck %s --check-prefix=GRAD
// RUN: costate-opt %s --differentiate-forward | FileCheck %s --check-prefix=JVP

// The first region runs in the forward sweep and is not differentiated; the
// second one gives the factors, from what it uses only.
// GRAD-LABEL: costate.kernel @root.grad
// GRAD:         %[[A:.*]] = costate.load %arg0
// GRAD:         %[[R:.*]] = costate.custom(%[[A]], %{{.*}}) {
// GRAD:           scf.while
// GRAD-NOT:       tape.push
// GRAD:         } : (f64, i64) -> f64
// GRAD:         tape.pivot
// GRAD:         %[[G:.*]] = costate.load
// GRAD-NOT:     costate.exp
// GRAD:         %[[P:.*]] = arith.divf %{{.*}}, %[[R]] : f64
// GRAD-NEXT:    costate.strong_mul %[[G]], %[[P]]
// JVP-LABEL:  costate.kernel @root.jvp
// JVP:          %[[A:.*]] = costate.load %arg0
// JVP:          %[[DA:.*]] = costate.load %arg2
// JVP:          %[[R:.*]] = costate.custom
// JVP:          } : (f64, i64) -> f64
// JVP-NOT:      costate.exp
// JVP:          %[[P:.*]] = arith.divf %{{.*}}, %[[R]] : f64
// JVP-NEXT:     costate.strong_mul %[[DA]], %[[P]]
costate.kernel @root(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %s = costate.custom(%v, %n) {
    ^bb0(%a: f64, %k: i64):
      %half = arith.constant 0.5 : f64
      %close = arith.constant 1.0e-15 : f64
      %t = scf.while (%r = %a) : (f64) -> f64 {
        %q = arith.divf %a, %r : f64
        %d = arith.subf %q, %r : f64
        %e = math.absf %d : f64
        %more = arith.cmpf ogt, %e, %close : f64
        scf.condition(%more) %r : f64
      } do {
      ^bb1(%r: f64):
        %q = arith.divf %a, %r : f64
        %b = arith.addf %q, %r : f64
        %next = arith.mulf %half, %b : f64
        scf.yield %next : f64
      }
      costate.yield %t : f64
    } partials {
    ^bb0(%a: f64, %k: i64, %r: f64):
      %unused = costate.exp %a : f64
      %half = arith.constant 0.5 : f64
      %p = arith.divf %half, %r : f64
      costate.yield %p : f64
    } : (f64, i64) -> f64
    costate.store %s, %y[%i] : !costate.array<f64, 1>
  }
}

// In a loop its result is saved, since the iterations before cannot be run again.
// GRAD-LABEL: costate.kernel @loop.grad
// GRAD:         scf.for
// GRAD:           %[[R:.*]] = costate.custom
// GRAD:           } : (f64) -> f64
// GRAD:           tape.push{{.*}} %[[R]] : f64
costate.kernel @loop(%x: !costate.array<f64, 0>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %v = costate.load %x[] : !costate.array<f64, 0>
  %w = scf.for %i = %zero to %n step %one iter_args(%b = %v) -> f64 : i64 {
    %s = costate.custom(%b) {
    ^bb0(%a: f64):
      %t = math.sqrt %a : f64
      costate.yield %t : f64
    } partials {
    ^bb0(%a: f64, %r: f64):
      costate.yield %r : f64
    } : (f64) -> f64
    scf.yield %s : f64
  }
  costate.store %w, %x[] : !costate.array<f64, 0>
}

// Nothing comes through stop_gradient.
// GRAD-LABEL: costate.kernel @stopped.grad
// GRAD:         tape.pivot
// GRAD-NOT:     costate.atomic_add
// JVP-LABEL:  costate.kernel @stopped.jvp
// JVP:          %[[ZERO:.*]] = arith.constant 0.0
// JVP:          costate.store %[[ZERO]], %arg3[]
costate.kernel @stopped(%x: !costate.array<f64, 0>, %y: !costate.array<f64, 0>) {
  %v = costate.load %x[] : !costate.array<f64, 0>
  %s = costate.stop_gradient %v : f64
  %w = costate.sin %s : f64
  costate.store %w, %y[] : !costate.array<f64, 0>
}
