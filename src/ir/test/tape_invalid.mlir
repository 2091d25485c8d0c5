// RUN: costate-opt %s --split-input-file --verify-diagnostics

costate.kernel @push_array(%x: !costate.array<f64, 1>) {
  // expected-error @+1 {{must be variadic of a scalar of a kernel}}
  tape.push %x : !costate.array<f64, 1>
}

// -----

costate.kernel @pop_half() {
  // expected-error @+1 {{must be variadic of a scalar of a kernel, but got 'f16'}}
  %0 = tape.pop : f16
}

// -----

costate.kernel @other_types(%x: f64) {
  // expected-error @+1 {{of record 0 has other types than its pop}}
  tape.push record(0) %x : f64
  %0 = tape.pop record(0) : f32
}

// -----

costate.kernel @twice(%x: f64) {
  tape.push record(0) %x : f64
  // expected-error @+1 {{has the number of another record}}
  tape.push record(0) %x : f64
  %0 = tape.pop record(0) : f64
}

// -----

costate.kernel @pivot_in_a_branch(%c: i1) {
  scf.if %c {
    // expected-error @+1 {{is a second one, or in a loop or branch; there is one in each work item, and one in the serial code}}
    tape.pivot
  }
}

// -----

costate.kernel @two_pivots() {
  // expected-error @+1 {{is a second one, or in a loop or branch}}
  tape.pivot
  tape.pivot
}

// -----

costate.kernel @far_record(%x: f64) {
  // expected-error @+1 {{has a record whose number is not between 0 and 2^31}}
  tape.push record(9223372036854775807) %x : f64
}
