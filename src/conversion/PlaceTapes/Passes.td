#ifndef COSTATE_CONVERSION_PLACETAPES
#define COSTATE_CONVERSION_PLACETAPES

include "mlir/Pass/PassBase.td"

def PlaceTapes : Pass<"place-tapes", "::costate::ir::KernelOp"> {
  let summary = "gives the records of each range rows of a tape that belongs to a warp";
  let description = [{
    Records that no loop repeats become values in scope. Where loops push, 32
    work items run together, a tile: they come to the same operations of their
    warp, whatever each of them does in between.

    - The row of every record is the same for all lanes: a loop that pushes takes
      as many iterations' rows as the lane with most iterations needs, and is
      walked back from there; lanes that had fewer wait.
    - A loop whose records do not fit into the rows that the warp has keeps its
      first ones; the rest is cut into segments that are run again, last one
      first, from checkpoints of what the loop carries.
    - What a tile needs is known before the pivot. If its rows are too few even
      so, it has no effect, and is run again with more (`tape.report`).

    ```mlir
    costate.range (%i) in (%n) {                            // before
      %r = scf.for %k = %zero to %m step %one iter_args(%a = %v) -> (f64) : i64 {
        tape.push record(0) %a : f64
        ...
      }
      tape.pivot
      ... scf.for %j = %zero to %m ... { %a = tape.pop record(0) : f64 ... }

    costate.range (%i) in (%n) {                            // after
      %active = tape.active
      %t = arith.select %active, %m, %zero
      %most = tape.warp_max %t
      %kept = ... tape.kept %most, ...
      scf.for %k = %zero to min(%kept, %t) ... { tape.write %a at %row : f64 ... }
      ... segments ...
      tape.report %fits, %need, %minRows
      ...
    } {costate.tiles}
    ```

    Left as they are: ranges whose forward sweep writes memory or may fail, or
    whose records nest in other ways; their tapes are counted first.
  }];
  let options = [Option<"deterministic", "deterministic", "bool", "false",
                        "leave ranges whose sums depend on the order of tiles">,
                 Option<"fastMath", "fast-math", "bool", "false",
                        "functions cost what the hardware's cost">,
                 Option<"inlines", "inlines", "bool", "false",
                        "functions become code of each place that calls them, which "
                        "iterations that are undone in batches shall not have much of">];
  let dependentDialects = ["::costate::ir::CostateDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::costate::tape::TapeDialect"];
}

#endif
