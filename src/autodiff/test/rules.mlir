// RUN: costate-opt %s --differentiate-forward="active=0,2" --canonicalize --cse | FileCheck %s

// In the derivative of a strong product a tangent of 0 wins on either side; the
// factor itself is a primal value, of which a 0 hides nothing.
// CHECK-LABEL: costate.kernel @product.jvp
// CHECK:         %[[X:.*]] = costate.load
// CHECK-NEXT:    %[[DX:.*]] = costate.load
// CHECK-NEXT:    %[[ROOT:.*]] = math.sqrt %[[X]]
// CHECK:         %[[DROOT:.*]] = costate.strong_mul %[[DX]], %{{.*}} : f64
// CHECK:         %[[Y:.*]] = costate.strong_mul %[[X]], %[[ROOT]] : f64
// CHECK-NEXT:    %[[LEFT:.*]] = costate.strong_mul %[[DX]], %[[ROOT]] : f64
// CHECK-NEXT:    %[[RIGHT:.*]] = costate.strong_mul symmetric %[[X]], %[[DROOT]] : f64
// CHECK-NEXT:    arith.addf %[[LEFT]], %[[RIGHT]]
costate.kernel @product(%x: !costate.array<f64, 0>, %c: !costate.array<f64, 0>, %y: !costate.array<f64, 0>) {
  %v = costate.load %x[] : !costate.array<f64, 0>
  %r = math.sqrt %v : f64
  %p = costate.strong_mul %v, %r : f64
  costate.store %p, %y[] : !costate.array<f64, 0>
}

// The derivative of the symmetric product is symmetric.
// CHECK-LABEL: costate.kernel @symmetric.jvp
// CHECK:         costate.strong_mul symmetric
// CHECK-NEXT:    %[[LEFT:.*]] = costate.strong_mul symmetric
// CHECK-NEXT:    %[[RIGHT:.*]] = costate.strong_mul symmetric
// CHECK-NEXT:    arith.addf %[[LEFT]], %[[RIGHT]]
costate.kernel @symmetric(%x: !costate.array<f64, 0>, %c: !costate.array<f64, 0>, %y: !costate.array<f64, 0>) {
  %v = costate.load %x[] : !costate.array<f64, 0>
  %w = costate.load %y[] : !costate.array<f64, 0>
  %p = costate.strong_mul symmetric %v, %w : f64
  costate.store %p, %y[] : !costate.array<f64, 0>
}

// min and max commute, so a tie is shared.
// CHECK-LABEL: costate.kernel @smaller.jvp
// CHECK:         %[[A:.*]] = costate.load
// CHECK-NEXT:    %[[DA:.*]] = costate.load
// CHECK-NEXT:    %[[B:.*]] = costate.load
// CHECK-NEXT:    arith.minnumf %[[A]], %[[B]]
// CHECK-NEXT:    %[[WINS:.*]] = arith.cmpf ole, %[[A]], %[[B]]
// CHECK-NEXT:    %[[ALONE:.*]] = arith.cmpf uno, %[[B]], %[[B]]
// CHECK-NEXT:    %[[COUNTS:.*]] = arith.ori %[[WINS]], %[[ALONE]]
// CHECK-NEXT:    %[[TIE:.*]] = arith.cmpf oeq, %[[A]], %[[B]]
// CHECK-NEXT:    %[[HALF:.*]] = arith.mulf %[[DA]]
// CHECK-NEXT:    %[[SHARE:.*]] = arith.select %[[TIE]], %[[HALF]], %[[DA]]
// CHECK-NEXT:    arith.select %[[COUNTS]], %[[SHARE]]
costate.kernel @smaller(%x: !costate.array<f64, 0>, %c: !costate.array<f64, 0>, %y: !costate.array<f64, 0>) {
  %a = costate.load %x[] : !costate.array<f64, 0>
  %b = costate.load %c[] : !costate.array<f64, 0>
  %m = arith.minnumf %a, %b : f64
  costate.store %m, %y[] : !costate.array<f64, 0>
}
