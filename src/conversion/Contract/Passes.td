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
  let summary = "eight iterations of a linear recurrence become one";
  let description = [{
    Of loops in which each carried value becomes `a * v + b`, with constants `a`
    and `b`: eight iterations are `a^8 * v + (a^7 + ... + 1) * b`, and those that
    are left over four, two and one. Rounds otherwise, so it runs with `fast_math`
    only.

    ```mlir
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) ... {   // before
      %w = math.fma %v, %a, %b : f64
      scf.yield %w : f64
    }
    %1 = arith.select %odd, (math.fma %x, %a, %b), %x               // after
    %2 = arith.select %bit1, (math.fma %1, %a2, %b2), %1
    %4 = arith.select %bit2, (math.fma %2, %a4, %b4), %2
    %r = scf.for %k = %c0 to %n/8 step %c1 iter_args(%v = %4) ... {
      %w = math.fma %v, %a8, %b8 : f64
      scf.yield %w : f64
    }
    ```

    Factors above 2 are left alone, since eight of them may overflow where the
    value that they belong to does not, and so is what leaves the normal numbers.
  }];
  let dependentDialects = ["mlir::math::MathDialect", "mlir::arith::ArithDialect",
                           "mlir::scf::SCFDialect"];
}

#endif
