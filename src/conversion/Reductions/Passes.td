#ifndef COSTATE_CONVERSION_REDUCTIONS
#define COSTATE_CONVERSION_REDUCTIONS

include "mlir/Pass/PassBase.td"

def SumInLoops : Pass<"sum-in-loops", "::costate::ir::KernelOp"> {
  let summary = "additions to one adjoint in each iteration of a loop become one after it";
  let description = [{
    Where no iteration of an `scf.for` reads or overwrites the array, the loop
    carries the sum. Only adjoints: what a primal adds has the order that the
    user has written down. A sum of 0 is not added: perhaps no iteration has
    come to the element, and there is none with such indices. A loop carries 16
    of them at most.

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

def SkipZeroAdjoints : Pass<"skip-zero-adjoints", "::costate::ir::KernelOp"> {
  let summary = "loops that would only add adjoints of 0 do not run";
  let description = [{
    For an `scf.for` that does nothing but add to adjoints (and their tangents),
    and adds 0 if some values in front of it are 0: by strong products, sums and
    choices of them. A minimum of many candidates passes its adjoint to one of
    them. Loops whose additions are all `exclusive` stay, since they may become
    vector code. An element of -0 keeps its sign. Lanes know the branch by
    `costate.skips_zeros`.

    ```mlir
    scf.for %k = ... {                                   // before
      %v = costate.strong_mul %g, %f : f64
      costate.atomic_add %v, %x_grad[%k] : ...
    }

    %any = arith.cmpf une, %g, %zero : f64               // after
    scf.if %any {
      scf.for %k = ... {
        %v = costate.strong_mul %g, %f : f64
        costate.atomic_add %v, %x_grad[%k] : ...
      }
    } {costate.skips_zeros}
    ```
  }];
}

def MarkReductions : Pass<"mark-reductions", "::costate::ir::KernelOp"> {
  let summary = "finds additions of many work items to one element";
  let description = [{
    An addition to a float whose indices are the same in all work items of a
    range is marked `costate.reduction` with the number of its element, counted
    within the range: outlining makes it a sum of the range, which is added to
    the element once, in an order that depends on the extents only. Nothing else
    in the range may read or overwrite the array, and the addition must belong to
    the reverse sweep if there is one, since forward sweeps may run more than
    once. A range has `most` of them.

    Other additions whose indices do not follow from those of the range are marked
    `costate.common`: lanes of a warp that come to them together add up first. If
    nothing else in the range may find the sum, blocks keep it until they end:
    `costate.in_block`. The rest of the additions to adjoints is marked
    `costate.skips_zeros`: GPUs do not add 0.

    ```mlir
    costate.range (%i) in (%n) {
      costate.atomic_add %v, %w[%zero] {costate.reduction = 0 : i64} : ...
      scf.for %k = ... {
        costate.atomic_add %x, %w2[%k] {costate.common, costate.in_block} : ...
      }
    }
    ```
  }];
  let options = [Option<"most", "most", "unsigned", "16",
                        "elements of a range that have a sum: registers of a GPU">];
}

def SumInRanges : Pass<"sum-in-ranges", "::costate::ir::KernelOp"> {
  let summary = "additions of all work items to one element become a result of the range";
  let description = [{
    What `mark-reductions` has marked, unless it stands in a loop. A result of a
    range is a sum in an order that depends on the extents only, and vector code
    can make it. Its sum is added to the element after the range, if it is not 0:
    perhaps no work item has come to the element, and there is none.

    ```mlir
    costate.range (%i) in (%n) {                           // before
      costate.atomic_add %v, %w[%zero] {costate.reduction = 0 : i64} : ...
    }

    %s = costate.range (%i) in (%n) -> f64 attributes {costate.adds} {  // after
      costate.yield %v : f64
    }
    %any = arith.cmpf une, %s, %none : f64
    scf.if %any {
      costate.atomic_add %s, %w[%zero] : ...
    }
    ```
  }];
}

#endif
