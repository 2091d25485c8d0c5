// Iterations of a loop that counts down.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[0.25, 1.25, -0.25]> : tensor<3xf64>},
                  %arg1: !costate.array<f64, 0> {fuzz.values = dense<0.5> : tensor<f64>}) {
  %c3_i64 = arith.constant 3 : i64
  costate.range (%i) in (%c3_i64) {
    %c2_i64 = arith.constant 2 : i64
    %c-1_i64 = arith.constant -1 : i64
    %v = costate.load %arg0[%i] : !costate.array<f64, 1>
    %w = scf.for %k = %c2_i64 to %c-1_i64 step %c-1_i64 iter_args(%a = %v) -> f64 : i64 {
      %b = costate.sin %a : f64
      %c = costate.load %arg0[%k] : !costate.array<f64, 1>
      %d = arith.mulf %b, %c : f64
      scf.yield %d : f64
    }
    costate.atomic_add %w, %arg1[] : !costate.array<f64, 0>
  }
}
