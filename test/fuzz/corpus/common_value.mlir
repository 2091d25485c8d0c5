// Both work items store the value, and one of them takes its adjoint.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[1.000000e+00, 0.000000e+00, -1.000000e+00, -1.000000e+00, 1.000000e+00]> : tensor<5xf64>}, %arg1: !costate.array<f64, 1> {fuzz.values = dense<[1.000000e+00, 1.250000e+00, 1.500000e+00, 2.500000e-01, 1.250000e+00, 7.500000e-01]> : tensor<6xf64>}) {
  %c3_i64 = arith.constant 3 : i64
  %0 = costate.load %arg1[%c3_i64] : !costate.array<f64, 1>
  %c2_i64 = arith.constant 2 : i64
  costate.range (%arg2) in (%c2_i64) {
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %1 = scf.while (%arg3 = %c0_i32) : (i32) -> i32 {
      %c5_i32 = arith.constant 5 : i32
      %2 = arith.cmpi slt, %arg3, %c5_i32 : i32
      scf.condition(%2) %arg3 : i32
    } do {
    ^bb0(%arg3: i32):
      %c0_i64 = arith.constant 0 : i64
      costate.store %0, %arg0[%c0_i64] : !costate.array<f64, 1>
      %2 = arith.addi %arg3, %c1_i32 : i32
      scf.yield %2 : i32
    }
  }
  costate.return
}
