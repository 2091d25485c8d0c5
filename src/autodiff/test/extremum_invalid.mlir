// RUN: costate-opt %s --differentiate-reverse --split-input-file --verify-diagnostics

costate.kernel @added(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 1>, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-note @+1 {{the minimum or maximum is taken here}}
    costate.atomic_max %v, %m[%j] : !costate.array<f64, 1>
    // expected-error @+2 {{this element may take a minimum or maximum in the same part of the kernel, and is used otherwise here; so what it becomes does not tell where the gradient goes}}
    // expected-note @+1 {{do one of the two in a range of its own}}
    costate.atomic_add %v, %m[%i] : !costate.array<f64, 1>
  }
}

// -----

// Elements of other work items, as far as anybody knows.
costate.kernel @stored(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 1>, %j: i64, %one: f64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{this element may take a minimum or maximum in the same part}}
    // expected-note @+1 {{in a `Var` with `min` or `max`}}
    costate.store %one, %m[%j] : !costate.array<f64, 1>
    // expected-note @+1 {{the minimum or maximum is taken here}}
    costate.atomic_max %v, %m[%i] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @both(%x: !costate.array<f64, 1>, %m: !costate.array<f64, 1>, %j: i64, %k: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-note @+1 {{the minimum or maximum is taken here}}
    costate.atomic_max %v, %m[%j] : !costate.array<f64, 1>
    // expected-error @+2 {{this element may take a minimum or maximum in the same part}}
    // expected-note @+1 {{in a range of its own}}
    costate.atomic_min %v, %m[%k] : !costate.array<f64, 1>
  }
}

// -----

// Integers have no gradient, but what a work item reads has no order.
costate.kernel @read(%x: !costate.array<f64, 1>, %m: !costate.array<i64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    // expected-note @+1 {{they are taken here}}
    costate.atomic_max %i, %m[] : !costate.array<i64, 0>
    // expected-error @+2 {{this read may or may not see minima or maxima that other work items of the same range take, so the gradient is not defined}}
    // expected-note @+1 {{in a range of its own}}
    %j = costate.load %m[] : !costate.array<i64, 0>
    %v = costate.load %x[%j] : !costate.array<f64, 1>
    costate.store %v, %x[%i] : !costate.array<f64, 1>
  }
}
