// RUN: costate-opt %s --split-serial --outline-device --split-input-file --verify-diagnostics

// A launch that only counts leaves out what writes memory: nothing that it does
// run must read that, least of all for an extent.
costate.kernel @stale(%x: !costate.array<f64, 1>, %k: !costate.array<i64, 0>, %y: !costate.array<f64, 1>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  // expected-error@+1 {{may decide the size of a tape}}
  costate.store %three, %k[] : !costate.array<i64, 0>
  %n = costate.load %k[] : !costate.array<i64, 0>
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %three step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.push record(0) %v : f64
    }
    tape.pivot
    scf.for %j = %zero to %three step %one : i64 {
      %v = tape.pop record(0) : f64
      costate.store %v, %y[%i] : !costate.array<f64, 1>
    }
  }
}

// -----

// What is measured in place runs twice, which scratch arrays do not bear.
costate.kernel @twice(%x: !costate.array<f64, 1>, %k: !costate.array<i64, 0>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = costate.extent %x[0] : !costate.array<f64, 1>
  tape.pivot
  %iterations = costate.load %k[] : !costate.array<i64, 0>
  // expected-error@+1 {{measured in place overwrites scratch arrays}}
  costate.range (%i) in (%n) {
    scf.for %j = %zero to %iterations step %one : i64 {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.push record(0) %v : f64
      %w = arith.mulf %v, %v : f64
      costate.store %w, %x[%i] {costate.replayed = 0 : i64} : !costate.array<f64, 1>
    }
    tape.pivot
    scf.for %j = %zero to %iterations step %one : i64 {
      %v = tape.pop record(0) : f64
      costate.store %v, %x[%i] : !costate.array<f64, 1>
    }
  }
}
