// RUN: costate-opt %s --split-input-file --verify-diagnostics

costate.kernel @no_loop(%c: i1) {
  // expected-error @+1 {{has `tape.pair`, which is not the number of a pair, on a loop}}
  scf.if %c {
  } {tape.pair = 0 : i64}
}

// -----

costate.kernel @no_number(%n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // expected-error @+1 {{has `tape.pair`, which is not the number of a pair, on a loop}}
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair}
}

// -----

costate.kernel @three(%n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair = 0 : i64}
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair = 0 : i64}
  // expected-error @+1 {{has the number of another pair}}
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair = 0 : i64}
}

// -----

costate.kernel @nested(%n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // expected-error @+1 {{is the second one of a pair, and in or around the first one}}
  scf.for %k = %c0 to %n step %c1 : i64 {
    scf.for %j = %c0 to %n step %c1 : i64 {
    } {tape.pair = 0 : i64}
  } {tape.pair = 0 : i64}
}

// -----

costate.kernel @while_undoes(%n: i64, %c: i1) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair = 0 : i64}
  // expected-error @+1 {{is the second one of a pair, and no `scf.for`}}
  scf.while : () -> () {
    scf.condition(%c)
  } do {
    scf.yield
  } attributes {tape.pair = 0 : i64}
}

// -----

costate.kernel @steps(%n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair = 0 : i64}
  // expected-error @+1 {{is one of a pair that does not count from 0 by 1}}
  scf.for %k = %c0 to %n step %c2 : i64 {
  } {tape.pair = 0 : i64}
}

// -----

costate.kernel @trip_counts() {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c7 = arith.constant 7 : i64
  %c8 = arith.constant 8 : i64
  scf.for %k = %c0 to %c7 step %c1 : i64 {
  } {tape.pair = 0 : i64}
  // expected-error @+1 {{takes other iterations than the loop that it undoes}}
  scf.for %k = %c0 to %c8 step %c1 : i64 {
  } {tape.pair = 0 : i64}
}

// -----

costate.kernel @elsewhere(%n: i64, %v: f64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
    tape.push record(0) %v : f64
  } {tape.pair = 0 : i64}
  scf.for %k = %c0 to %n step %c1 : i64 {
  } {tape.pair = 0 : i64}
  // expected-error @+1 {{stands in loops that undo other ones than those around its push}}
  %0 = tape.pop record(0) : f64
}

// -----

costate.kernel @order_in_a_loop(%n: i64, %v: f64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
    tape.push record(0) %v : f64
    tape.push record(1) %v : f64
  } {tape.pair = 0 : i64}
  scf.for %k = %c0 to %n step %c1 : i64 {
    // expected-error @+1 {{comes back before what is above it on the tape}}
    %0 = tape.pop record(0) : f64
    %1 = tape.pop record(1) : f64
  } {tape.pair = 0 : i64}
}

// -----

costate.kernel @order_of_loops(%n: i64, %v: f64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
    tape.push record(0) %v : f64
  } {tape.pair = 0 : i64}
  scf.for %k = %c0 to %n step %c1 : i64 {
    tape.push record(1) %v : f64
  } {tape.pair = 1 : i64}
  tape.pivot
  // expected-error @+1 {{comes back before what is above it on the tape}}
  scf.for %k = %c0 to %n step %c1 : i64 {
    %0 = tape.pop record(0) : f64
  } {tape.pair = 0 : i64}
  scf.for %k = %c0 to %n step %c1 : i64 {
    %0 = tape.pop record(1) : f64
  } {tape.pair = 1 : i64}
}
