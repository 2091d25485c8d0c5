// RUN: costate-opt %s -split-input-file -verify-diagnostics

costate.kernel @none(%n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{has `costate.checkpoints`, which is an i64 above 0, on a loop}}
  scf.for %t = %zero to %n step %one : i64 {
  } {costate.checkpoints = 0 : i64}
}

// -----

costate.kernel @noLoop(%c: i1) {
  // expected-error @+1 {{has `costate.checkpoints`, which is an i64 above 0, on a loop}}
  scf.if %c {
  } {costate.checkpoints = 2 : i64}
}

// -----

costate.kernel @noRerun(%c: i1) {
  // expected-error @+1 {{has `costate.rerun`, but is no loop}}
  scf.if %c {
  } {costate.rerun}
}
