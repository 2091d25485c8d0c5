#ifndef COSTATE_CONVERSION_FINDNAN_PASSES
#define COSTATE_CONVERSION_FINDNAN_PASSES

include "mlir/Pass/PassBase.td"

def NameOperations : Pass<"name-operations", "::costate::ir::KernelOp"> {
  let summary = "the location of an operation says what the user calls it";
  let description = [{
    Whatever a derivative computes for an operation has its location, so that
    its name is known there too. The operation itself is marked.

    ```mlir
    %y = math.sqrt %x : f64 loc("demo.cpp":12:3)                          // before
    %y = math.sqrt %x {costate.own} : f64 loc("sqrt"("demo.cpp":12:3))    // after
    ```
  }];
}

def FindNan : Pass<"find-nan", "::costate::ir::KernelOp"> {
  let summary = "check that nothing makes inf or NaN of finite numbers";
  let description = [{
    After every operation that can, its result is checked; after a load, what
    it found; after an update, the element.

    ```mlir
    %y = costate.log %x : f64
    costate.check_finite "log(%) gives %#; ..." %y from %x : (f64) -> f64
    ```

    What does not count is not checked: a result that only reaches the side of a
    `select` that is not taken, or a `strong_mul` whose other factor is 0, or
    that is used in a branch or loop only (it may have been hoisted). A value
    that the forward sweep saves for such a use is checked after the `pop`.

    ```mlir
    %r = arith.divf %half, %y : f64
    %d = costate.strong_mul %g, %r : f64
    %counts = arith.cmpf une, %g, %zero : f64
    costate.check_finite "... % / % ..." %r if %counts from %half, %y : (f64, f64) -> f64
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif
