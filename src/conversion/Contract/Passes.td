#ifndef COSTATE_CONVERSION_CONTRACT_PASSES
#define COSTATE_CONVERSION_CONTRACT_PASSES

include "mlir/Pass/PassBase.td"

def ContractMultiplyAdd : Pass<"contract-multiply-add"> {
  let summary = "a product and the sum that alone uses it become one fma";
  let description = [{
    Decides once, before differentiation, which products and sums are rounded
    together. Later stages never contract, so a value that the reverse sweep
    computes again has the bits that it had in the primal.

    ```mlir
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %p, %c : f64           // before
    %s = math.fma %a, %b, %c : f64         // after
    ```

    A difference negates: `a*b - c` is `fma(a, b, -c)` and `c - a*b` is
    `fma(-a, b, c)`.
  }];
  let dependentDialects = ["mlir::math::MathDialect", "mlir::arith::ArithDialect"];
}

#endif
