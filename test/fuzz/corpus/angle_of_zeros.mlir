// Upstream's operation would fold to NaN.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[0.5, 1.25]> : tensor<2xf64>}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : i64
  %angle = costate.atan2 %zero, %zero : f64
  costate.atomic_add %angle, %arg0[%c0] : !costate.array<f64, 1>
}
