// RUN: costate-opt %s --split-input-file --verify-diagnostics

costate.kernel @empty(%i: i64) {
  // expected-error @+1 {{a private array has 1 to 8192 elements of type 'f64', not 0}}
  %a = costate.local : !costate.local<f64, 0>
}

// -----

costate.kernel @large(%i: i64) {
  // expected-error @+1 {{a private array has 1 to 16384 elements of type 'f32', not 16385}}
  %a = costate.local : !costate.local<f32, 16385>
}

// -----

costate.kernel @elements(%i: i64) {
  // expected-error @+1 {{a private array cannot have elements of type 'f80'}}
  %a = costate.local : !costate.local<f80, 2>
}

// -----

costate.kernel @types(%i: i64, %v: f32) {
  %a = costate.local : !costate.local<f64, 2>
  // expected-error @+1 {{the value has the type of the elements}}
  "costate.local_store"(%v, %a, %i) : (f32, !costate.local<f64, 2>, i64) -> ()
}

// -----

costate.kernel @of_serial_code(%n: i64, %v: f64) {
  %a = costate.local : !costate.local<f64, 2>
  costate.range (%i) in (%n) {
    // expected-error @+1 {{uses a private array of serial code in a range}}
    costate.local_store %v, %a[%i] : !costate.local<f64, 2>
  }
}

// -----

costate.kernel @as_a_value(%c: i1) {
  %a = costate.local : !costate.local<f64, 2>
  %b = costate.local : !costate.local<f64, 2>
  // expected-error @+1 {{uses a private array as a whole}}
  %d = arith.select %c, %a, %b : !costate.local<f64, 2>
}

// -----

costate.kernel @argument(%i: i64, %c: i1) {
  // expected-error @+1 {{is no scalar of a kernel}}
  %a = builtin.unrealized_conversion_cast %i : i64 to !costate.local<f64, 2>
}
