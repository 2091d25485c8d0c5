#ifndef COSTATE_CONVERSION_REDUCTIONS
#define COSTATE_CONVERSION_REDUCTIONS

include "mlir/Pass/PassBase.td"

def SumInLoops : Pass<"sum-in-loops", "::costate::ir::KernelOp"> {
  let summary = "additions to one adjoint in each turn of a loop become one behind it";
  let description = [{
    Where no turn of an `scf.for` reads or overwrites the array, the loop carries
    the sum. Only adjoints: what a primal adds has the order that the user has
    written down. A sum of 0 is not added: perhaps no turn has come to the element,
    and there is none with such indices. A loop carries 16 of them at most.

    ```mlir
    scf.for %k = ... {                                   // before
      costate.atomic_add %v, %g[%i] : ...
    }

    %s = scf.for %k = ... iter_args(%a = %zero) {        // after
      %b = arith.addf %a, %v : f64
      scf.yield %b : f64
    }
    %any = arith.cmpf une, %s, %zero : f64
    scf.if %any {
      costate.atomic_add %s, %g[%i] : ...
    }
    ```
  }];
}

def MarkReductions : Pass<"mark-reductions", "::costate::ir::KernelOp"> {
  let summary = "finds additions of many iterations to one element";
  let description = [{
    An addition to a float whose indices are the same in all iterations of a
    range is marked `costate.reduction` with the number of its element, counted
    within the range: outlining makes it a sum of the range, which is added to
    the element once, in an order that depends on the extents only. Nothing else
    in the range may read or overwrite the array, and the addition must belong to
    the reverse sweep if there is one, since forward sweeps may run more than
    once. A range has 16 of them at most.

    Other additions whose indices do not follow from those of the range are marked
    `costate.common`: lanes of a warp that come to them together add up first.

    ```mlir
    costate.range (%i) in (%n) {
      costate.atomic_add %v, %w[%zero] {costate.reduction = 0 : i64} : ...
      scf.for %k = ... {
        costate.atomic_add %x, %w2[%k] {costate.common} : ...
      }
    }
    ```
  }];
}

#endif
