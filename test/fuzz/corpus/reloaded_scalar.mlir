// Range, sum and a reloaded scalar array.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[1.0, 0.75]> : tensor<2xf64>},
                  %arg1: !costate.array<f64, 1> {fuzz.values = dense<[0.5, 0.25]> : tensor<2xf64>},
                  %arg2: !costate.array<f64, 0> {fuzz.values = dense<0.5> : tensor<f64>}) {
  %c1_i64 = arith.constant 1 : i64
  %c0_i64 = arith.constant 0 : i64
  %0 = costate.load %arg0[%c0_i64] : !costate.array<f64, 1>
  costate.store %0, %arg2[] : !costate.array<f64, 0>
  %1 = costate.load %arg2[] : !costate.array<f64, 0>
  %2 = costate.range (%i, %j) in (%c1_i64, %c1_i64) -> f64 {
    costate.atomic_add %1, %arg1[%c0_i64] : !costate.array<f64, 1>
    costate.yield %1 : f64
  }
  %3 = arith.mulf %2, %2 : f64
  costate.store %3, %arg0[%c1_i64] : !costate.array<f64, 1>
}
