// RUN: costate-opt %s --split-input-file --differentiate-reverse=final-state --verify-diagnostics

// RULE: final-state
costate.kernel @in_place(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    // expected-error @+2 {{the gradient needs the value read here from argument 1, but it is overwritten before the kernel ends}}
    // expected-note @+1 {{keep every version: give the array a time index and write element t+1 from element t, or write the result to another array}}
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %w, %x[%i] : !costate.array<f64, 1>
  }
}

// -----

// RULE: final-state
// A later range overwrites what an earlier one has read.
costate.kernel @later_part(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0.0 : f64
  costate.range (%i) in (%n) {
    // expected-error @+2 {{the gradient needs the value read here}}
    // expected-note @+1 {{keep every version}}
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
  costate.range (%i) in (%n) {
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %zero, %x[%i] : !costate.array<f64, 1>
  }
}

// -----

// RULE: final-state
// The wrong way through time: element t is read at iteration t-1 and stored at t.
costate.kernel @backwards(%u: !costate.array<f64, 1>) {
  %n = costate.extent %u[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %t = %zero to %n step %one : i64 {
    %s = arith.addi %t, %one : i64
    // expected-error @+2 {{the gradient needs the value read here}}
    // expected-note @+1 {{keep every version}}
    %v = costate.load %u[%s] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %w, %u[%t] : !costate.array<f64, 1>
  }
}

// -----

// RULE: updates
costate.kernel @mixed(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %y[0] : !costate.array<f64, 1>
  %one = arith.constant 1 : i64
  costate.range (%i) in (%n) {
    // expected-error @+2 {{this read may or may not see additions that other work items of the same range make, so the gradient is not defined}}
    // expected-note @+1 {{read the array in a range of its own, before or after}}
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    %j = arith.addi %i, %one : i64
    // expected-note @+1 {{the additions are made here}}
    costate.atomic_add %v, %x[%j] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @mixed_with_all(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %y[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    // expected-error @+2 {{this read may or may not see additions that other work items of the same range make, so the gradient is not defined}}
    // expected-note @+1 {{read the array in a range of its own, before or after}}
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-note @+1 {{the additions are made here}}
    costate.atomic_add %v, %x[%zero] : !costate.array<f64, 1>
  }
}

// -----

// RULE: own-elements
costate.kernel @all_store(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = arith.constant 3 : i64
  %zero = arith.constant 0 : i64
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{several work items of the range store to this element, so which value remains is left to chance and the gradient is not defined}}
    // expected-note @+1 {{add with `+=`, or store in serial code}}
    costate.store %v, %y[%zero] : !costate.array<f64, 1>
  }
}

// -----

// RULE: own-elements
// How often a range runs need not be known.
costate.kernel @rows_store(%x: !costate.array<f64, 2>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %m = costate.extent %x[1] : !costate.array<f64, 2>
  %zero = arith.constant 0.0 : f64
  costate.range (%i, %j) in (%n, %m) {
    %v = costate.load %x[%i, %j] : !costate.array<f64, 2>
    costate.store %zero, %y[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{several work items of the range store to this element}}
    // expected-note @+1 {{add with `+=`, or store in serial code}}
    costate.store %v, %y[%i] : !costate.array<f64, 1>
  }
}

// -----

// RULE: ranges
costate.kernel @under_a_loop(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-note @+1 {{of serial loops and branches around ranges, like this one, only what they find is kept}}
  scf.for %t = %zero to %n step %one : i64 {
    costate.range (%i) in (%n) {
      // expected-error @+2 {{the gradient needs the value read here from argument 1, but it is overwritten before the kernel ends}}
      // expected-note @+1 {{give the array a time index and write element t+1 from element t}}
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = arith.mulf %v, %v : f64
      // expected-note @+1 {{it may be overwritten here}}
      costate.store %w, %x[%i] : !costate.array<f64, 1>
    }
  }
}

// -----

// RULE: ranges
// What iteration t reads was there before the loop, and is overwritten in iteration t + 1.
costate.kernel @iterations_back(%u: !costate.array<f64, 2>) {
  %n = costate.extent %u[1] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %t = %zero to %n step %one : i64 {
    %s = arith.addi %t, %one : i64
    costate.range (%i) in (%n) {
      // expected-error @+2 {{the gradient needs the value read here from argument 1, but it is overwritten before the kernel ends}}
      // expected-note @+1 {{record the launch with a `Tape`}}
      %v = costate.load %u[%s, %i] : !costate.array<f64, 2>
      %w = arith.mulf %v, %v : f64
      // expected-note @+1 {{it may be overwritten here}}
      costate.store %w, %u[%t, %i] : !costate.array<f64, 2>
    }
    costate.range (%i) in (%n) {
      %v = costate.load %u[%t, %i] : !costate.array<f64, 2>
      costate.store %v, %u[%s, %i] : !costate.array<f64, 2>
    }
  }
}

// -----

costate.kernel @no_rule(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  costate.range (%i) in (%n) {
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    // expected-error @+2 {{the derivative of `math.copysign` is not known}}
    // expected-note @+1 {{compute it from operations that have one, or from values that do not depend on an array with a gradient}}
    %w = math.copysign %v, %v : f64
    costate.store %w, %y[%i] : !costate.array<f64, 1>
  }
}

// -----

costate.kernel @bits(%x: !costate.array<f64, 1>, %y: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  // expected-error @+2 {{`bit_cast` reads the bits of a value that depends on an array with a gradient; bits have no derivative}}
  // expected-note @+1 {{if they count as constants, write `bit_cast<T>(stop_gradient(x))`}}
  %n = arith.bitcast %v : f64 to i64
  %w = arith.sitofp %n : i64 to f64
  costate.store %w, %y[%zero] : !costate.array<f64, 1>
}

// -----

// RULE: final-state
// The outer loop comes back to the same slice.
costate.kernel @again(%u: !costate.array<f64, 2>) {
  %n = costate.extent %u[0] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %r = %zero to %n step %one : i64 {
    scf.for %t = %zero to %n step %one : i64 {
      %s = arith.addi %t, %one : i64
      // expected-error @+2 {{the gradient needs the value read here}}
      // expected-note @+1 {{keep every version}}
      %v = costate.load %u[%t, %zero] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      // expected-note @+1 {{it may be overwritten here}}
      costate.store %w, %u[%s, %zero] : !costate.array<f64, 2>
    }
  }
}

// -----

// RULE: final-state
// In place, slice by slice.
costate.kernel @in_the_slice(%u: !costate.array<f64, 2>) {
  %n = costate.extent %u[0] : !costate.array<f64, 2>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %t = %zero to %n step %one : i64 {
    scf.for %i = %zero to %n step %one : i64 {
      %j = arith.addi %i, %one : i64
      // expected-error @+2 {{the gradient needs the value read here}}
      // expected-note @+1 {{keep every version}}
      %v = costate.load %u[%t, %j] : !costate.array<f64, 2>
      %w = costate.sin %v : f64
      // expected-note @+1 {{it may be overwritten here}}
      costate.store %w, %u[%t, %i] : !costate.array<f64, 2>
    }
  }
}

// -----

// RULE: own-elements
// Work item i reads the element that work item i+1 stores.
costate.kernel @neighbours(%x: !costate.array<f64, 2>, %at: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 2>
  %one = arith.constant 1 : i64
  costate.range (%i, %j) in (%n, %n) {
    %next = arith.addi %i, %one : i64
    // expected-error @+1 {{one work item of the range uses the element that another one stores, so what it finds is left to chance and the gradient is not defined}}
    %v = costate.load %x[%next, %j] : !costate.array<f64, 2>
    %w = arith.addf %v, %v : f64
    // expected-note @+2 {{the element is stored here}}
    // expected-note @-3 {{store into another array, or use one range for each}}
    costate.store %w, %x[%i, %j] : !costate.array<f64, 2>
  }
}

// -----

// RULE: final-state
// A later part stores to an element that only the data tells.
costate.kernel @any_element(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>, %s: !costate.array<f64, 0>) {
  %zero = arith.constant 0 : i64
  %f0 = arith.constant 0.0 : f64
  %n = costate.extent %at[0] : !costate.array<i64, 1>
  // expected-error @+2 {{the gradient needs the value read here}}
  // expected-note @+1 {{keep every version}}
  %v = costate.load %x[%zero] : !costate.array<f64, 1>
  %w = costate.sin %v : f64
  costate.atomic_add %w, %s[] : !costate.array<f64, 0>
  costate.range (%i) in (%n) {
    %j = costate.load %at[%i] : !costate.array<i64, 1>
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %f0, %x[%j] : !costate.array<f64, 1>
  }
}

// -----

// RULE: final-state
// The body of a while follows its condition, whichever element it stores.
costate.kernel @condition(%x: !costate.array<f64, 1>, %at: !costate.array<i64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %f0 = arith.constant 0.5 : f64
  scf.while (%t = %zero) : (i64) -> i64 {
    // expected-error @+2 {{the gradient needs the value read here}}
    // expected-note @+1 {{keep every version}}
    %v = costate.load %x[%zero] : !costate.array<f64, 1>
    %go = arith.cmpf ogt, %v, %f0 : f64
    scf.condition(%go) %t : i64
  } do {
  ^bb0(%t: i64):
    %u = costate.load %x[%zero] : !costate.array<f64, 1>
    %w = arith.mulf %u, %f0 : f64
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %w, %x[%zero] : !costate.array<f64, 1>
    %next = arith.addi %t, %one : i64
    scf.yield %next : i64
  }
}

// -----

// RULE: final-state
// Iteration t reads the element that iteration t+2 stores.
costate.kernel @stride_back(%x: !costate.array<f64, 1>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %four = arith.constant 4 : i64
  scf.for %t = %zero to %n step %one : i64 {
    %to = arith.muli %t, %two : i64
    %from = arith.addi %to, %four : i64
    // expected-error @+2 {{the gradient needs the value read here}}
    // expected-note @+1 {{keep every version}}
    %v = costate.load %x[%from] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %w, %x[%to] : !costate.array<f64, 1>
  }
}

// -----

// RULE: final-state
// A loop that may start below 0 may come to slice 0.
costate.kernel @first(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 0>, %from: i64) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%one) {
    // expected-error @+2 {{the gradient needs the value read here}}
    // expected-note @+1 {{keep every version}}
    %v = costate.load %x[%zero] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %s[] : !costate.array<f64, 0>
  }
  scf.for %t = %from to %n step %one : i64 {
    %next = arith.addi %t, %one : i64
    %f = arith.sitofp %t : i64 to f64
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %f, %x[%next] : !costate.array<f64, 1>
  }
}

// -----

// Element 1 is one that the loop comes to.
costate.kernel @below(%x: !costate.array<f64, 1>, %s: !costate.array<f64, 0>) {
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  costate.range (%i) in (%one) {
    // expected-error @+2 {{the gradient needs the value read here}}
    // expected-note @+1 {{keep every version}}
    %v = costate.load %x[%one] : !costate.array<f64, 1>
    %w = costate.sin %v : f64
    costate.store %w, %s[] : !costate.array<f64, 0>
  }
  scf.for %t = %zero to %n step %one : i64 {
    %f = arith.sitofp %t : i64 to f64
    // expected-note @+1 {{it may be overwritten here}}
    costate.store %f, %x[%t] : !costate.array<f64, 1>
  }
}
