// RUN: costate-opt %s --split-input-file --differentiate-reverse --verify-diagnostics

// A gradient that saves values.
costate.kernel @saves(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  scf.for %k = %zero to %n step %one : i64 {
    // expected-error @+2 {{a gradient has no gradient}}
    // expected-note @+1 {{take its forward derivative: it gives the same second derivatives, a column or a combination of columns at a time}}
    tape.push record(0) %v : f64
  }
  tape.pivot
  scf.for %k = %zero to %n step %one : i64 {
    %w = tape.pop record(0) : f64
    costate.atomic_add %w, %x[%zero] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @copies(%x: !costate.array<f64, 1>, %v: !costate.array<f64, 1>) {
  // expected-error @+2 {{the gradient of a copy is not known}}
  // expected-note @+1 {{take that of the kernel that makes no copies}}
  costate.copy %x to %v : !costate.array<f64, 1>
}

// -----

// A gradient that saves nothing.
costate.kernel @takes(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    // expected-error @+2 {{a gradient has no gradient}}
    // expected-note @+1 {{take its forward derivative}}
    %g = costate.atomic_take %m[] : !costate.array<f64, 0>
    costate.atomic_add %g, %x[%i] : !costate.array<f64, 1>
  }
}
