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
