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

def ComposeIterations : Pass<"compose-iterations"> {
  let summary = "32 iterations of a linear recurrence become one";
  let description = [{
    Of loops in which each carried value becomes `a * v + b`, with constants `a`
    and `b`: n iterations are `a^n * v + (a^(n-1) + ... + 1) * b`. Those that are
    left over of 32 are 16, 8, 4, 2 and one. Rounds otherwise, so it runs with
    `fast_math` only.

    ```mlir
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) ... {   // before
      %w = math.fma %v, %a, %b : f64
      scf.yield %w : f64
    }
    %1 = arith.select %odd, (math.fma %x, %a, %b), %x               // after
    %2 = arith.select %bit1, (math.fma %1, %a2, %b2), %1
    ...
    %r = scf.for %k = %c0 to %n/32 step %c1 iter_args(%v = %5) ... {
      %w = math.fma %v, %a32, %b32 : f64
      scf.yield %w : f64
    }
    ```

    Where 32 of them leave the ordinary numbers, or grow to more than 256 times a
    value, which may overflow though single iterations do not, there are 16 or 8
    together, or none.
  }];
  let dependentDialects = ["mlir::math::MathDialect", "mlir::arith::ArithDialect",
                           "mlir::scf::SCFDialect"];
}

#endif
