// RUN: costate-opt %s --inline-custom | FileCheck %s

// Also where one is used by the other.
// CHECK-LABEL: costate.kernel @nested
// CHECK-NOT:     costate.custom
// CHECK:         %[[R:.*]] = math.sqrt %arg0
// CHECK-NEXT:    %[[S:.*]] = scf.if
// CHECK:         %[[T:.*]] = arith.addf %[[S]], %[[R]]
// CHECK-NEXT:    costate.store %[[T]]
costate.kernel @nested(%x: f64, %c: i1, %y: !costate.array<f64, 0>) {
  %z = costate.custom(%x, %c) {
  ^bb0(%a: f64, %d: i1):
    %r = costate.custom(%a) {
    ^bb0(%b: f64):
      %q = math.sqrt %b : f64
      costate.yield %q : f64
    } partials {
    ^bb0(%b: f64, %q: f64):
      costate.yield %q : f64
    } : (f64) -> f64
    %s = scf.if %d -> f64 {
      scf.yield %a : f64
    } else {
      scf.yield %r : f64
    }
    %t = arith.addf %s, %r : f64
    costate.yield %t : f64
  } partials {
  ^bb0(%a: f64, %d: i1, %t: f64):
    costate.yield %t : f64
  } : (f64, i1) -> f64
  costate.store %z, %y[] : !costate.array<f64, 0>
}
