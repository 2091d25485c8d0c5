#ifndef COSTATE_CONVERSION_KERNELTODEVICE_PASSES
#define COSTATE_CONVERSION_KERNELTODEVICE_PASSES

include "mlir/Pass/PassBase.td"

def SplitSerial : Pass<"split-serial", "::costate::ir::KernelOp"> {
  let summary = "serial code becomes what the host computes and what one thread of the device runs";
  let description = [{
    The host knows extents and scalar arguments, and computes integers from
    them. What touches memory or computes with floats goes into regions of
    `costate.serial`, as large as the ranges, the copies and the control flow
    around them allow.

    A launch that only measures tapes leaves out what is after a `tape.pivot`,
    but for ranges with tapes. What their forward sweeps use moves in front of
    the pivot, if it follows from nothing after it; other such ranges are
    measured right before they run (`costate.measured_in_place`).

    ```mlir
    %n = costate.extent %x[0] : !costate.array<f64, 1>      // before
    %v = costate.load %x[%zero] : !costate.array<f64, 1>
    %w = math.sin %v : f64
    costate.range (%i) in (%n) { ... %w ... }

    %n = costate.extent %x[0] : !costate.array<f64, 1>      // after
    %w = costate.serial -> f64 {
      %v = costate.load %x[%zero] : !costate.array<f64, 1>
      %s = math.sin %v : f64
      costate.yield %s : f64
    }
    costate.range (%i) in (%n) { ... %w ... }
    ```
  }];
  let dependentDialects = ["::costate::ir::CostateDialect"];
}

def OutlineDevice : Pass<"outline-device", "::mlir::ModuleOp"> {
  let summary = "ranges and serial code become functions of a device, kernels host code";
  let description = [{
    Runs after `split-serial`. A kernel NAME becomes

    - `NAME.entry(launch, null, arguments)`, host code: it unpacks the arguments
      and calls `costate_device_run` with the number of a device function and
      its words, in program order;
    - `NAME.device0(words, thread, threads, memory)` for each range and serial
      part, run by every thread of a grid. Work items are taken with a stride of
      the number of threads; serial code is run by thread 0;
    - `NAME.measure0`, of serial code and of what pushes onto a tape: what of its
      forward sweep decides how large tapes get (`CountingSlice.h`). It only
      counts the bytes that would be pushed.

    `code/DeviceCode.h` says what the words are. Values that one device
    function computes and another one uses stay in the frame of the launch; what
    the host needs it reads back (`costate_device_read`), and waits for that.
    Threads of a range with sums add them up at their end (`DeviceSums.c`). What
    they add to single elements (`mark-reductions`) the last block of the grid adds
    there, or, where tiles come in any order, each block at its end.
    A `costate.device_function` of the module says of each of them what the host is told.
  }];
  let options = [Option<"debug", "debug", "bool", "false",
                        "let errors name the work item">,
                 Option<"lanes", "lanes", "unsigned", "32", "of a warp">];
  let dependentDialects = ["::costate::ir::CostateDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif
