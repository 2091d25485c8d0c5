// Passes see that the push of a record is never reached before they see it of
// its pop.
costate.kernel @k(%arg0: !costate.array<f64, 1> {fuzz.values = dense<[1.5, 0.25]> : tensor<2xf64>}) {
  %false = arith.constant false
  scf.while (%arg1 = %false) : (i1) -> () {
    scf.condition(%arg1)
  } do {
    %true = arith.constant true
    %0 = scf.if %true -> (i1) {
      scf.yield %true : i1
    } else {
      scf.yield %false : i1
    }
    %1 = arith.xori %0, %true : i1
    scf.if %1 {
      %cst = arith.constant 6.250000e-02 : f64
      %cst_0 = arith.constant 0.000000e+00 : f64
      %2 = arith.cmpf oeq, %cst_0, %cst : f64
      scf.if %2 {
        %c0_i64 = arith.constant 0 : i64
        costate.store %cst_0, %arg0[%c0_i64] : !costate.array<f64, 1>
      }
    }
    scf.yield %true : i1
  }
}
