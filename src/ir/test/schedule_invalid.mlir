// RUN: costate-opt %s --split-input-file --verify-diagnostics

costate.kernel @no_loop(%n: i64) {
  // expected-error @+1 {{does not stand in front of a loop}}
  tape.schedule keep
  tape.pivot
}

// -----

costate.kernel @two_answers(%n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{says either `keep`, or `segments`, or `online`}}
  tape.schedule keep online
  scf.for %k = %zero to %n step %one : i64 {
  }
}

// -----

costate.kernel @of_how_many(%n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{says into what it divides how many iterations}}
  tape.schedule segments(%n of %n)
  scf.for %k = %zero to %n step %one : i64 {
  } {costate.rerun}
}

// -----

costate.kernel @keeps_nothing(%n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{keeps a loop that saves nothing}}
  tape.schedule keep
  scf.for %k = %zero to %n step %one : i64 {
  }
}

// -----

costate.kernel @keeps_what_runs_again(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{keeps a loop that runs again, or the other way round}}
  tape.schedule keep
  scf.for %k = %zero to %n step %one : i64 {
    tape.push record(0) %v : f64
  } {costate.rerun}
}

// -----

costate.kernel @other_segments(%n: i64, %count: i64, %length: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{has another number of segments than the loop over these}}
  tape.schedule segments(%count of %length) in(%n)
  scf.for %k = %zero to %length step %one : i64 {
  } {costate.rerun}
}

// -----

costate.kernel @no_segment(%n: i64, %count: i64, %length: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{is about a loop with no segment in it, or several}}
  tape.schedule segments(%count of %length) in(%n)
  scf.for %k = %zero to %count step %one : i64 {
  } {costate.rerun}
}

// -----

// The first iteration of a segment is counted by segments.
costate.kernel @other_length(%n: i64, %count: i64, %length: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @+1 {{has segments that do not make up the iterations in front of the rest}}
  tape.schedule segments(%count of %length) in(%n)
  scf.for %k = %zero to %count step %one : i64 {
    %first = arith.muli %k, %count : i64
    %left = arith.subi %n, %first : i64
    %some = arith.maxsi %left, %zero : i64
    %here = arith.minsi %length, %some : i64
    scf.for %j = %zero to %here step %one : i64 {
    } {costate.segment}
  } {costate.rerun}
}

// -----

// Segments that are all of one length, and a rest that is not what they leave.
costate.kernel @other_rest(%n: i64, %count: i64, %length: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %covered = arith.muli %count, %count : i64
  %rest = arith.subi %n, %covered : i64
  // expected-error @+1 {{has segments that do not make up the iterations in front of the rest}}
  tape.schedule segments(%count of %length) rest(%rest) in(%n)
  scf.for %k = %zero to %count step %one : i64 {
    scf.for %j = %zero to %length step %one : i64 {
    } {costate.segment}
  } {costate.rerun}
  scf.for %k = %zero to %rest step %one : i64 {
  } {costate.rest}
}

// -----

costate.kernel @starts_again(%v: f64, %n: i64, %count: i64, %length: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %covered = arith.muli %count, %length : i64
  %rest = arith.subi %n, %covered : i64
  // expected-error @+1 {{has a rest that does not go on behind the segments}}
  tape.schedule segments(%count of %length) rest(%rest) in(%n)
  %s = scf.for %k = %zero to %count step %one iter_args(%a = %v) -> (f64) : i64 {
    %t = scf.for %j = %zero to %length step %one iter_args(%b = %a) -> (f64) : i64 {
      scf.yield %b : f64
    } {costate.segment}
    scf.yield %t : f64
  } {costate.rerun}
  %r = scf.for %k = %zero to %rest step %one iter_args(%a = %v) -> (f64) : i64 {
    scf.yield %a : f64
  } {costate.rest}
}

// -----

costate.kernel @behind_nothing(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %k = %zero to %n step %one : i64 {
    // expected-note @+1 {{the value is this one}}
    %s = costate.sin %v : f64
    // expected-error @+1 {{puts a value behind a checkpoint where no loop runs again}}
    tape.plan behind(%s : f64)
  }
}

// -----

// What an iteration begins with is not saved.
costate.kernel @nobody_gives(%v: f64, %n: i64) {
  %yes = arith.constant true
  tape.schedule online
  %r = scf.while (%a = %v, %more = %yes) : (f64, i1) -> (f64) {
    scf.condition(%more) %a : f64
  } do {
  ^bb0(%a: f64):
    // expected-error @+1 {{runs again, and nobody gives what it takes}}
    %s = costate.sin %a : f64
    %t = costate.cos %v : f64
    tape.push record(0) %v : f64
    tape.plan behind(%s, %t : f64, f64)
    scf.yield %s, %yes : f64, i1
  } attributes {costate.rerun, tape.pair = 0 : i64}
}

// -----

// Nor is it in what a smaller segment takes of the block around it.
costate.kernel @nobody_gives_outside(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %yes = arith.constant true
  tape.schedule keep
  scf.for %k = %zero to %n step %one : i64 {
    %c = costate.cos %v : f64
    tape.schedule online
    %r = scf.while (%more = %yes) : (i1) -> (i1) {
      scf.condition(%more) %more : i1
    } do {
    ^bb0(%more: i1):
      // expected-error @+1 {{runs again, and nobody gives what it takes}}
      %s = costate.sin %c : f64
      tape.plan behind(%s : f64)
      scf.yield %yes : i1
    } attributes {costate.rerun, tape.pair = 0 : i64}
    %e = costate.exp %v : f64
    tape.push record(0) %e : f64
    tape.plan saved(%e : f64)
  }
}

// -----

costate.kernel @saves_again(%v: f64, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %yes = arith.constant true
  tape.schedule online
  %r = scf.while (%more = %yes) : (i1) -> (i1) {
    scf.condition(%more) %more : i1
  } do {
  ^bb0(%more: i1):
    %s = scf.for %k = %zero to %n step %one iter_args(%a = %v) -> (f64) : i64 {
      // expected-error @+1 {{saves in an iteration that runs again}}
      tape.push record(0) %a : f64
      scf.yield %a : f64
    } {costate.segment}
    tape.plan behind(%s : f64)
    scf.yield %yes : i1
  } attributes {costate.rerun, tape.pair = 0 : i64}
}

// -----

costate.kernel @overwrites(%x: !costate.array<f64, 1>, %n: i64) {
  %zero = arith.constant 0 : i64
  %yes = arith.constant true
  tape.schedule online
  %r = scf.while (%more = %yes) : (i1) -> (i1) {
    scf.condition(%more) %more : i1
  } do {
  ^bb0(%more: i1):
    // expected-error @+1 {{runs again on memory that it has overwritten}}
    %s = costate.load %x[%zero] {costate.replayed = 0 : i64} : !costate.array<f64, 1>
    tape.plan behind(%s : f64)
    scf.yield %yes : i1
  } attributes {costate.rerun, tape.pair = 0 : i64}
}

// -----

// A private array that the loop changes is no part of what is saved.
costate.kernel @private(%n: i64) {
  %zero = arith.constant 0 : i64
  %yes = arith.constant true
  %p = costate.local : !costate.local<f64, 4>
  tape.schedule online
  %r = scf.while (%more = %yes) : (i1) -> (i1) {
    scf.condition(%more) %more : i1
  } do {
  ^bb0(%more: i1):
    // expected-error @+1 {{runs again, and nobody gives what the private array held}}
    %s = costate.local_load %p[%zero] : !costate.local<f64, 4>
    %t = costate.sin %s : f64
    costate.local_store %t, %p[%zero] : !costate.local<f64, 4>
    tape.plan behind(%t : f64)
    scf.yield %yes : i1
  } attributes {costate.rerun, tape.pair = 0 : i64}
}
