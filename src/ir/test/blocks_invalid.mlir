// RUN: costate-opt %s --split-input-file --verify-diagnostics

costate.kernel @serial() {
  // expected-error @+1 {{stands outside of a range}}
  %a = costate.shared : !costate.local<f32, 4>
}

// -----

costate.kernel @unknown(%n: i64) {
  costate.range (%i) in (%n) {
    // expected-error @+1 {{knows no operation `block.wait`}}
    costate.group "block.wait"() : () -> ()
  }
}

// -----

costate.kernel @form(%n: i64, %m: i32) {
  costate.range (%i) in (%n) {
    // expected-error @+1 {{has operands or results that `warp.ballot` does not have}}
    %b = costate.group "warp.ballot"(%m, %m) : (i32, i32) -> i32
  }
}

// -----

costate.kernel @private(%n: i64, %v: f32) {
  costate.range (%i) in (%n) {
    %a = costate.local : !costate.local<f32, 4>
    // expected-error @+1 {{uses a private array as a whole}}
    %old = costate.shared_update "add" %v, %a[%i] : !costate.local<f32, 4>
  }
}

// -----

costate.kernel @large(%n: i64) {
  // expected-error @+1 {{has `costate.block_dim`, which is 1 to 1024, on a range}}
  costate.range (%i) in (%n) attributes {costate.block_dim = 2048 : i64} {
  }
}
