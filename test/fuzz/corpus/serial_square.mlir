// The version that the gradient reads has a tangent of its own.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[0.25, 1.25, -0.25]> : tensor<3xf64>}) {
  %c0_i64 = arith.constant 0 : i64
  %0 = costate.load %arg0[%c0_i64] : !costate.array<f64, 1>
  %1 = arith.mulf %0, %0 : f64
  costate.store %1, %arg0[%c0_i64] : !costate.array<f64, 1>
}
