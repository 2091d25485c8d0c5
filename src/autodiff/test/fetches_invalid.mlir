// RUN: costate-opt %s --split-input-file --differentiate-reverse=active=0,1 --verify-diagnostics

costate.kernel @appended(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<i64, 0>, %one: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{the gradient needs what this atomic operation has returned, which depends on the order of work items and cannot be found again}}
    // expected-note @+1 {{do it in a kernel in front of this one that stores what it returns into an array, and read that array here}}
    %j = costate.atomic_fetch "add" %one, %c[] : !costate.array<i64, 0>
    costate.store %v, %y[%j] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @returned(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %v: f64, %j: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    // expected-error @+2 {{this operation returns what an element with a derivative was, or replaces it, at a time that depends on the order of work items; so its derivative is not defined}}
    // expected-note @+1 {{use `+=`, `atomic_min` or `atomic_max` and not what they return, or do it in serial code, or on elements that no other work item uses}}
    %w = costate.atomic_fetch "exchange" %v, %x[%j] : !costate.array<f64, 1>
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @mixed(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>, %c: !costate.array<i64, 1>, %one: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    // expected-note @+1 {{the atomic updates are made here}}
    %j = costate.atomic_fetch "or" %one, %c[%one] : !costate.array<i64, 1>
    // expected-error @+2 {{this read may or may not see atomic updates that other work items of the same range make, so the gradient is not defined}}
    // expected-note @+1 {{read the array in a range of its own, before or after}}
    %k = costate.load %c[%one] : !costate.array<i64, 1>
  }
}
