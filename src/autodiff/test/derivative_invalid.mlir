// RUN: costate-opt %s --split-input-file --differentiate-forward --verify-diagnostics
// RUN: costate-opt %s --split-input-file --differentiate-reverse --verify-diagnostics

// A gradient that saves values.
costate.kernel @saves(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  scf.for %k = %zero to %n step %one : i64 {
    // expected-error @+2 {{the derivative of this gradient is not supported yet}}
    // expected-note @+1 {{a gradient without loops that save values has a forward derivative; others can be differenced}}
    tape.push %v : f64
  }
  tape.turn
  scf.for %k = %zero to %n step %one : i64 {
    %w = tape.pop : f64
    costate.atomic_add %w, %x[%zero] : !costate.array<f64, 1>
  }
}
