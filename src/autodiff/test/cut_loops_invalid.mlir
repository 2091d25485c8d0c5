// RUN: costate-opt %s --differentiate-reverse -split-input-file -verify-diagnostics

// RULE: checkpoints
// The state is in an array, and no time index keeps the versions apart: the
// forward sweep overwrites a scratch copy, which is no part of a checkpoint.
costate.kernel @inplace(%x: !costate.array<f64, 1>, %m: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    // expected-error @+1 {{this loop cannot run again from checkpoints: it overwrites elements of an array that it has read before}}
    scf.for %t = %zero to %m step %one : i64 {
      // expected-note @+2 {{this is the place}}
      // expected-note @-2 {{keep the state of the loop in variables or private arrays; or make an iteration a launch, and record the launches with a `Tape` that has `snapshots`; or leave `checkpoints` out}}
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = costate.sin %v : f64
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    } {costate.checkpoints = 2 : i64}
  }
}

// -----

costate.kernel @driven(%x: !costate.array<f64, 2>, %m: i64) {
  %n = costate.extent %x[1] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+2 {{this loop cannot run again from checkpoints: there is a parallel loop in it}}
  // expected-note @+1 {{launch that as a kernel of its own from a loop on the host}}
  scf.for %t = %zero to %m step %one : i64 {
    %next = arith.addi %t, %one : i64
    // expected-note @+1 {{this is the place}}
    costate.range (%i) in (%n) {
      %v = costate.load %x[%t, %i] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      costate.store %w, %x[%next, %i] : !costate.array<f64, 2>
    }
  } {costate.checkpoints = 2 : i64}
}

// -----

costate.kernel @effects(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %limit = arith.constant 2.0 : f64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{this loop cannot run again from checkpoints: what decides whether it goes on has effects}}
    // expected-note @+1 {{leave `checkpoints` out}}
    %r = scf.while (%a = %v) : (f64) -> f64 {
      %c = arith.cmpf olt, %a, %limit : f64
      costate.atomic_add %a, %y[%i] : !costate.array<f64, 1>
      scf.condition(%c) %a : f64
    } do {
    ^bb0(%a: f64):
      %w = costate.exp %a : f64
      scf.yield %w : f64
    } attributes {costate.checkpoints = 2 : i64}
    costate.atomic_add %r, %y[%i] : !costate.array<f64, 1>
  }
}
