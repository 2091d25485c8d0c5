// RUN: costate-opt %s --split-input-file --verify-diagnostics

costate.kernel @not_saved(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    // expected-note @+1 {{the value is this one}}
    %s = costate.sin %v : f64
    %t = costate.cos %v : f64
    tape.push record(0) %t : f64
    // expected-error @+1 {{says of a value that it is saved, which it is not}}
    tape.plan saved(%s, %t : f64, f64)
  }
  tape.pivot
}

// -----

costate.kernel @from_nothing(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
    // expected-note @+1 {{the value is this one}}
    %s = costate.sin %a : f64
    // expected-error @+1 {{recomputes a value from one that it does not give}}
    tape.plan recomputed(%s : f64)
    scf.yield %s : f64
  }
  tape.pivot
}

// -----

costate.kernel @outer_plan_lacks_it(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    %c = costate.cos %v : f64
    %d = costate.exp %v : f64
    scf.for %j = %zero to %n step %one : i64 {
      // expected-note @+1 {{the value is this one}}
      %s = costate.sin %c : f64
      // expected-error @+1 {{recomputes a value from one that it does not give}}
      tape.plan recomputed(%s : f64)
    }
    tape.push record(0) %d : f64
    tape.plan saved(%d : f64)
  }
  tape.pivot
}

// -----

costate.kernel @steers(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    %s = costate.sin %v : f64
    // expected-note @+1 {{the value is this one}}
    %c = arith.cmpf olt, %s, %v : f64
    tape.push record(0) %s : f64
    // expected-error @+1 {{recomputes a value that cannot be found again}}
    tape.plan saved(%s : f64) recomputed(%c : i1)
  }
  tape.pivot
}

// -----

costate.kernel @overwritten(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    // expected-note @+1 {{the value is this one}}
    %v = costate.load %x[%k] {costate.replayed = 0 : i64} : !costate.array<f64, 1>
    // expected-error @+1 {{recomputes a value that cannot be found again}}
    tape.plan loaded(%v : f64) inverted(%k : i64)
  }
  tape.pivot
}

// -----

costate.kernel @no_load(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    // expected-note @+1 {{the value is this one}}
    %s = costate.sin %v : f64
    // expected-error @+1 {{loads a value that does not come from memory}}
    tape.plan loaded(%s : f64)
  }
  tape.pivot
}

// -----

costate.kernel @no_counter(%v: i64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-note @+1 {{the value is this one}}
  %r = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (i64) : i64 {
    %b = arith.addi %a, %k : i64
    // expected-error @+1 {{inverts a value that does not count iterations}}
    tape.plan recomputed(%b : i64) inverted(%a, %k : i64, i64)
    scf.yield %b : i64
  }
  tape.pivot
}

// -----

costate.kernel @of_another_block(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-note @+1 {{the value is this one}}
  %s = costate.sin %v : f64
  scf.for %k = %zero to %n step %one : i64 {
    // expected-error @+1 {{lists a value of another block}}
    tape.plan recomputed(%s : f64)
  }
  tape.pivot
}
