// RUN: costate-opt %s --split-input-file --differentiate-forward="active=0,2" --verify-diagnostics

// Where a record without a number is popped is not known.
costate.kernel @unnumbered(%x: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  // expected-error @+2 {{the derivative of a record without a number is not known}}
  // expected-note @+1 {{give its push and its pop the same `record(N)`}}
  tape.push %v : f64
  tape.pivot
  %w = tape.pop : f64
  costate.store %w, %x[%zero] : !costate.array<f64, 1>
}

// -----

// A function of two results has no rule; its derivative is not taken as 0.
costate.kernel @two_results(%x: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  // expected-error @+2 {{the derivative of `math.sincos` is not known}}
  // expected-note @+1 {{compute it from operations that have one, or from values that do not depend on an array with a gradient}}
  %s, %c = math.sincos %v : f64
  costate.store %s, %x[%zero] : !costate.array<f64, 1>
}

// -----

costate.kernel @copied_constant(%x: !costate.array<f64, 1>, %n: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  costate.copy %x to %n : !costate.array<f64, 1>
  // expected-error @+1 {{an array without tangents is copied into one that has them}}
  costate.copy %n to %y : !costate.array<f64, 1>
}
