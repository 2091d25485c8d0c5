// The element is equal to what it takes: tangents of tangents go where the
// tangent goes, which reads the element after that. Zeros of two signs are equal.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[1.000000e+00, -1.000000e+00]> : tensor<2xf64>}, %arg1: !costate.array<f64, 1> {fuzz.values = dense<[5.000000e-01, 0.000000e+00, 2.500000e-01]> : tensor<3xf64>}) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %zero = arith.constant -0.000000e+00 : f64
  %quarter = arith.constant 2.500000e-01 : f64
  %x = costate.load %arg0[%c1] : !costate.array<f64, 1>
  costate.atomic_max %zero, %arg1[%c1] : !costate.array<f64, 1>
  costate.atomic_max %quarter, %arg1[%c2] : !costate.array<f64, 1>
  costate.range (%i) in (%c1) {
    %1 = costate.load %arg1[%c1] : !costate.array<f64, 1>
    %2 = costate.load %arg1[%c2] : !costate.array<f64, 1>
    %3 = arith.mulf %x, %1 : f64
    %4 = arith.mulf %3, %2 : f64
    %5 = arith.mulf %x, %2 : f64
    %6 = arith.addf %4, %5 : f64
    costate.store %6, %arg1[%c0] : !costate.array<f64, 1>
  }
  costate.return
}
