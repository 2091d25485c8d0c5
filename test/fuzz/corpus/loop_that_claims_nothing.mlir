// Whether the loop runs follows from memory that is overwritten, and nobody reverses it:
// cut where tapes are measured, it has no derivative either.
module {
  costate.kernel @k(%arg0: !costate.array<f64, 2> {fuzz.values = dense<[[2.500000e-01, 7.500000e-01], [-5.000000e-01, 5.000000e-01]]> : tensor<2x2xf64>}, %arg1: !costate.array<i32, 1> {fuzz.values = dense<[1, 0, 3, 0]> : tensor<4xi32>}) {
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant 0.000000e+00 : f64
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    scf.for %arg2 = %c0_i64 to %c2_i64 step %c1_i64  : i64 {
      costate.range (%arg3) in (%c0_i64) {
        %0 = costate.load %arg0[%c0_i64, %c0_i64] : !costate.array<f64, 2>
        scf.while : () -> () {
          %1 = arith.cmpf une, %0, %cst : f64
          scf.condition(%1)
        } do {
          costate.atomic_add %c0_i32, %arg1[%c0_i64] : !costate.array<i32, 1>
          scf.yield
        }
        costate.store %cst, %arg0[%c0_i64, %c0_i64] : !costate.array<f64, 2>
      }
    }
    costate.return
  }
}
