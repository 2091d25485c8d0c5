#ifndef COSTATE_CONVERSION_KERNELTOLLVM_PASSES
#define COSTATE_CONVERSION_KERNELTOLLVM_PASSES

include "mlir/Pass/PassBase.td"

defvar dialects = ["::costate::ir::CostateDialect", "::mlir::arith::ArithDialect",
                   "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];

def InlineCustom : Pass<"inline-custom", "::mlir::ModuleOp"> {
  let summary = "functions with partial derivatives become what they compute";
  let description = [{
    After all differentiation, `costate.custom` is replaced by its first region.

    ```mlir
    %y = costate.custom(%x) { ... } partials { ... } : (f64) -> f64  // before
    %y = math.sqrt %x : f64                                          // after
    ```
  }];
}

def PackRecords : Pass<"pack-records", "::costate::ir::KernelOp"> {
  let summary = "values lie on the tape in as few bits as hold them";
  let description = [{
    After all differentiation: narrow numbers as what they are in memory, integers
    with a small bound in 8, 16 or 32 bits.

    ```mlir
    tape.push record(0) %v : f32       // before; %v is an element of an array of f16
    %v = tape.pop record(0) : f32

    %h = arith.truncf %v : f32 to f16  // after
    %b = arith.bitcast %h : f16 to i16
    tape.push record(0) %b : i16
    ```
  }];
  let dependentDialects = dialects;
}

def OutlineRanges : Pass<"outline-ranges", "::mlir::ModuleOp"> {
  let summary = "kernels and their ranges become functions";
  let description = [{
    A kernel NAME becomes three kinds of functions whose signatures
    `code/KernelCode.h` defines; bodies stay kernel IR.

    - `NAME.entry(launch, worker, arguments)` unpacks the arguments and holds
      the serial code; each range in it becomes a call of `costate_range`.
    - `NAME.range0(frame, worker, begin, end, sums)`, the body of the first
      range, loads what the range uses from the frame of the entry and calls
    - `NAME.chunk0(sums, worker, begin, end, ...)`, which loops over the chunk.
      Array bases are parameters of it, `noalias` and, where nothing is stored,
      `readonly`: this is what lets LLVM vectorise the loop. Ranges of several
      dimensions become rows around an innermost loop.

    The worker is argument 1 of all of them. An array is a cast of its base
    address and extents, with the number of the argument for errors to name:

    ```mlir
    %x = builtin.unrealized_conversion_cast %base, %extent
           {costate.parameter = 0 : i64} : !llvm.ptr, i64 to !costate.array<f64, 1>
    ```

    In a kernel that pushes onto a tape, a launch that only measures
    (`costate_dry_run`) leaves a work item at `tape.pivot` and performs no store
    of the serial code; elsewhere `tape.pivot` is erased. Sums are accumulated
    in f64, in an order that depends on the chunk only. Places of ranges go
    into the table of sites, attribute `costate.sites` of the module.

    With `debug`, the worker knows which work item it runs, and the runtime is
    told the extents of a range before it begins.
  }];
  let options = [Option<"debug", "debug", "bool", "false",
                        "let errors name the work item">];
  let dependentDialects = dialects;
}

def SplitRows : Pass<"split-rows", "::mlir::ModuleOp"> {
  let summary = "loops of their own for the interior of a range";
  let description = [{
    In the loop over a row of a range, for a branch that is marked
    `costate.interior`:

    ```mlir
    scf.for %k = %lo to %hi step %one {              // before
      scf.if %is_inside { A } else { B } {costate.interior}
    }

    scf.for %side = %zero to %two step %one {        // after
      scf.for %k = %from to %to step %one { B } {costate.row}
      scf.if %is_first {
        scf.for %k = %first to %last step %one { A }
      }
    }
    ```

    Nothing stands in the way of vector code for the interior then, which begins
    and ends where vectors do. The border may have lanes.
  }];
  let options = [Option<"vectorBits", "vector-bits", "int64_t", "512",
                        "of the registers of the processor">];
  let dependentDialects = dialects;
}

def LowerCalls : Pass<"lower-calls", "::mlir::ModuleOp"> {
  let summary = "functions and their calls in the LLVM dialect";
  let description = [{
    Runs after kernels have been outlined. An array is passed as its base
    address and extents; several results are returned as a structure.

    ```mlir
    %y = func.call @f(%x) : (f64) -> f64          // before
    %y = llvm.call @function0(%x) : (f64) -> f64  // after
    ```
  }];
  let dependentDialects = dialects;
}

def ExpandChecks : Pass<"expand-checks", "::mlir::ModuleOp"> {
  let summary = "loop steps, and optionally indices, are checked before use";
  let description = [{
    A step of 0 ends the launch through `costate_step_zero`; a constant step
    needs no check. With `index-checks` each index of each access is compared
    with its extent and ends the launch through `costate_index_error`.

    ```mlir
    %bad = arith.cmpi uge, %i, %extent : i64
    scf.if %bad {
      llvm.call @costate_index_error(%worker, %site, %argument, %dim, %i, %extent)
    }
    %v = costate.load %x[%i] : !costate.array<f64, 1>
    ```

    An access that `watch-accesses` has marked is reported to the runtime, which
    ends the launch if another work item uses the same element in a way that
    excludes this one:

    ```mlir
    llvm.call @costate_use(%worker, %site, %parameter, %element, %use)
    costate.store %v, %x[%i] {costate.watched = "store"} : !costate.array<f64, 1>
    ```

    The numbers of the parameters concerned become the attribute
    `costate.watched_parameters` of the module.
  }];
  let options = [Option<"indexChecks", "index-checks", "bool", "false",
                        "check every index against its extent">];
  let dependentDialects = dialects;
}

def ExpandTape : Pass<"expand-tape", "::mlir::ModuleOp"> {
  let summary = "tape operations become stores and loads at the top of the worker's tape";
  let description = [{
    A record holds its values by decreasing size without gaps, then its bools,
    8 per byte; on a device its size is rounded up to 8, which aligns all values.
    In functions of a device with `costate.lanes` interleaved tapes,
    each field takes 8 bytes and that of lane `l` stands at
    `top + offset(f) * lanes + l * 8`: lanes whose tapes have grown apart do not
    meet. Such a tape has room, and is only measured where `costate.measures` says so.

    ```mlir
    tape.push %x : f64                     // before

    %left = ... tapeEnd - tapeTop          // after
    %full = arith.cmpi ult, %left, %c8 : i64
    scf.if %full {
      llvm.call @costate_tape_grow(%worker, %c8, %site)
    }
    llvm.store %x, %top {alignment = 1 : i64} : f64, !llvm.ptr
    ```
  }];
  let dependentDialects = dialects;
}

def ConvertKernelToLLVM : Pass<"convert-kernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "kernel IR in outlined functions becomes the LLVM dialect";
  let description = [{
    Runs after `outline-ranges`, `expand-checks`, `expand-tape` and
    `convert-scf-to-cf`. Maths become calls of one function per operation and
    type, whose vector forms have the same bits; the loop vectoriser finds them
    through `vector-function-abi-variant`.

    ```mlir
    %y = costate.sin %x : f64                               // before
    %y = llvm.call @costate_host_sind1(%x) : (f64) -> f64   // after
    ```

    `maths` names the family of functions: `libm`, `libclc` (of GPUs), or one
    with vector forms: `sse2`, `neon`, `avx2` or `avx512`. Nothing is contracted or
    reassociated unless `fast-math` says so. With it and `libclc`, functions and
    quotients of f32 are instructions of NVIDIA GPUs:

    ```mlir
    %y = llvm.call_intrinsic "llvm.nvvm.sin.approx.f"(%x) : (f32) -> f32
    ```

    With `deterministic`, additions to floats that several work items may reach
    are handed to the runtime, which performs them in order.
  }];
  let options = [
    Option<"maths", "maths", "std::string", "\"avx2\"", "family of functions">,
    Option<"deterministic", "deterministic", "bool", "false",
           "float atomics happen in an order that no thread count changes">,
    Option<"fastMath", "fast-math", "bool", "false",
           "allow reassociation, contraction and approximate division">];
  let dependentDialects = dialects;
}

#endif
