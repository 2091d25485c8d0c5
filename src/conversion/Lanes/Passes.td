#ifndef COSTATE_CONVERSION_LANES_PASSES
#define COSTATE_CONVERSION_LANES_PASSES

include "mlir/Pass/PassBase.td"

def FormLanes : Pass<"form-lanes", "::mlir::ModuleOp"> {
  let summary = "work items of a row become lanes of vectors";
  let description = [{
    Runs on outlined functions. The loop over a row takes as many work items at a
    time as a vector register holds of the floats that the body computes with;
    the last ones of a row are masked.

    ```mlir
    scf.for %k = %lo to %hi step %c1 {                     // before
      %v = costate.load %x[%k] : !costate.array<f32, 1>
      %r = scf.for %j = %c0 to %count step %c1 iter_args(%a = %v) ...
    } {costate.row}
    scf.for %k = %lo to %hi step %c16 {                    // after
      %v = llvm.intr.masked.load %place, %mask : vector<16xf32>
      %r = scf.for %j = %c0 to %longest step %c1 iter_args(%a = %v) ...
    }
    ```

    Values that all lanes share stay scalars. A branch whose condition differs
    between lanes runs if any lane takes it; a loop runs until no lane has an
    iteration left. A loop that pops what another one has pushed starts late for
    lanes with fewer iterations, so that all lanes meet their records in the
    same order. What cannot be done with vectors (atomics that other work items
    make as well, calls, assertions) is done lane by lane in its place. A record
    of the tape holds the values of all lanes.

    Where the lengths of loops are known before a work item runs, and two vectors
    of a row tell that lanes would wait for others, blocks of up to 1,024
    work items come in the order of their lengths.

    Rows without branches and loops are left to LLVM's loop vectoriser. Sums of a
    row are those of 16 partial ones, whatever the number of lanes.

    The attribute `costate.vector_lanes` of the function tells how many lanes there are,
    or `costate.obstacle` what was in the way.
  }];
  let options = [
    Option<"lanes", "lanes", "unsigned", "0",
           "lanes of every row that can have some; 0: what pays">,
    Option<"ordered", "ordered", "bool", "true",
           "work items of different length come in the order of their lengths">,
    Option<"bits", "bits", "unsigned", "512", "of a vector register">,
    Option<"deterministic", "deterministic", "bool", "false",
           "additions to shared elements keep the order of work items">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

#endif
