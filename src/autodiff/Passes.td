#ifndef COSTATE_AUTODIFF_PASSES
#define COSTATE_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def DifferentiateReverse : Pass<"differentiate-reverse", "::mlir::ModuleOp"> {
  let summary = "append the gradient of every kernel";
  let description = [{
    The gradient runs the forward sweep of each work item without its stores,
    saving what the reverse sweep needs on a tape, and then the reverse sweep.

    ```mlir
    // before
    costate.range (%i) in (%n) {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      %w = costate.sin %v : f64
      costate.store %w, %y[%i] : !costate.array<f64, 1>
    }
    // after: %x_grad and %y_grad are new arguments
    costate.range (%i) in (%n) {
      %v = costate.load %x[%i] : !costate.array<f64, 1>
      tape.pivot
      %g = costate.load %y_grad[%i] : !costate.array<f64, 1>
      costate.store %zero, %y_grad[%i] : !costate.array<f64, 1>
      %c = costate.cos %v : f64
      %h = costate.strong_mul %g, %c : f64
      costate.atomic_add exclusive %h, %x_grad[%i] : !costate.array<f64, 1>
    }
    ```

    Where the kernel overwrites what its gradient needs, the gradient reads it
    from further arguments; `<name>.record` is the primal that fills these.
  }];
  let options = [ListOption<"active", "active", "unsigned",
      "numbers of the arguments that have an adjoint; default: every float array">,
    Option<"finalState", "final-state", "bool", "false",
      "refuse a kernel whose gradient needs values that it overwrites">,
    Option<"byBudget", "by-budget", "bool", /*default=*/"false",
           "cut loops that save more than `tape.budget`">,
    Option<"measured", "measured", "bool", /*default=*/"false",
           "the tape is measured before it runs, as on a GPU">,
    Option<"target", "target", "::costate::sizing::Target",
           "::costate::sizing::Target::Cpu", "what decides what is saved", [{
             ::llvm::cl::values(
               clEnumValN(::costate::sizing::Target::Cpu, "cpu", "costs of a CPU"),
               clEnumValN(::costate::sizing::Target::Gpu, "gpu", "costs of a GPU"),
               clEnumValN(::costate::sizing::Target::GpuFastMath, "gpu-fast-math",
                          "costs of a GPU with `fast_math`"))
           }]>,
    Option<"check", "check", "bool", "false",
      "append `<name>.check`, which finds out whether memory is as the gradient "
      "needs it">,
    Option<"fastMath", "fast-math", "bool", "false",
      "with `check`: what it finds may be rounded otherwise than what memory "
      "holds">,
    Option<"fromMemory", "from-memory", "bool", "false",
      "read memory where there are no versions">,
    Option<"saveAll", "save-all", "bool", "false", "save all that is needed">,
    Option<"plan", "plan", "bool", "false", "leave `tape.plan` in the gradient">
  ];
  let dependentDialects = ["costate::tape::TapeDialect",
                           "mlir::math::MathDialect", "mlir::scf::SCFDialect",
                           "mlir::arith::ArithDialect"];
}

def DifferentiateForward : Pass<"differentiate-forward", "::mlir::ModuleOp"> {
  let summary = "append to every kernel one that computes its tangent as well";
  let description = [{
    ```mlir
    // before
    %w = costate.sin %v : f64
    // after
    %w = costate.sin %v : f64
    %c = costate.cos %v : f64
    %dw = costate.strong_mul %dv, %c : f64
    ```
  }];
  let options = [ListOption<"active", "active", "unsigned",
      "numbers of the arguments that have a tangent; default: every float array">,
    Option<"order", "order", "unsigned", "1",
      "the highest derivative along each curve">,
    Option<"directions", "directions", "unsigned", "0",
      "curves at once; 0: one, and tangent arrays have no dimension for it">];
  let dependentDialects = ["mlir::math::MathDialect", "mlir::scf::SCFDialect",
                           "mlir::arith::ArithDialect"];
}

def InlineLoopsThatRunOnce : Pass<"inline-loops-that-run-once"> {
  let summary = "no loop around what runs once";
  let description = [{
    A function that returns early is a loop that each `return` leaves. Where constants of its flags say that a
    `scf.while` runs once, its body takes its place:

    ```mlir
    // before
    %r:2 = scf.while (%v = %zero, %has = %false) : (f64, i1) -> f64 {
      %goes = arith.xori %has, %true : i1
      scf.condition(%goes) %v : f64
    } do {
    ^bb0(%v: f64):
      %w = ...
      scf.yield %w, %true : f64, i1
    }
    // after
    %w = ...
    ```
  }];
}

def DropUnitDimensions : Pass<"drop-unit-dimensions"> {
  let summary = "no dimension of a range in which it has one work item";
  let description = [{
    ```mlir
    // before
    costate.range (%i, %j) in (%n, %one) { ... }
    // after
    costate.range (%i) in (%n) {
      %j = arith.constant 0 : i64
      ...
    }
    ```

    So neighbours in memory are neighbours in the range, where a simulation has one environment. Who names work items
    by their indices leaves the pass out.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def NormalizeLoops : Pass<"normalize-loops"> {
  let summary = "loops from 0 to a trip count by 1";
  let description = [{
    Says what every `scf.for` of a kernel or function means, also one with a negative step:

    ```mlir
    // before
    scf.for %k = %lo to %hi step %step : i64 { ... }
    // after
    %n = costate.trip_count %lo to %hi by %step
    scf.for %iteration = %zero to %n step %one : i64 {
      %change = arith.muli %iteration, %step : i64
      %k = arith.addi %lo, %change : i64
      ...
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def InlineCalls : Pass<"inline-calls", "::mlir::ModuleOp"> {
  let summary = "functions become part of the kernels that call them";
  let description = [{
    ```mlir
    // before
    func.func private @f(%x: f64) -> f64 {
      %y = math.sin %x : f64
      return %y : f64
    }
    %v = func.call @f(%u) : (f64) -> f64
    // after
    %v = math.sin %u : f64
    ```
  }];
}

def Prune : Pass<"prune", "::costate::ir::KernelOp"> {
  let summary = "erase what no effect needs";
  let description = [{
    Also what numbered records hold for nobody, and loop-carried values that
    only feed themselves:

    ```mlir
    // before: nothing uses %s
    %s, %v = scf.for ... iter_args(%a = %zero, %b = %x) { ... }
    // after
    %v = scf.for ... iter_args(%b = %x) { ... }
    ```
  }];
}

def WatchAccesses : Pass<"watch-accesses", "::costate::ir::KernelOp"> {
  let summary = "mark the accesses of ranges that only a run can clear of races";
  let description = [{
    Marks every access to an array that its range stores to, or both reads and
    updates, unless each work item certainly has elements of its own. An access
    to an adjoint is named after what it reverses.

    ```mlir
    costate.store %v, %y[%j] : !costate.array<f64, 1>                                // before
    costate.store %v, %y[%j] {costate.watched = "store"} : !costate.array<f64, 1>    // after
    ```

    Tangents are used exactly like what they belong to; they are not marked.
  }];
}

def ForwardStores : Pass<"forward-stores", "::costate::ir::KernelOp"> {
  let summary = "values in the place of loads of what the work item has stored";
  let description = [{
    ```mlir
    // before
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    %v = costate.load %y[%i] : !costate.array<f64, 1>
    // after: %w takes the place of %v
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    ```
  }];
}

def EraseOverwritten : Pass<"erase-overwritten", "::costate::ir::KernelOp"> {
  let summary = "erase stores that the work item certainly overwrites";
  let description = [{
    ```mlir
    // before
    costate.store %v, %y[%i] : !costate.array<f64, 1>
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    // after
    costate.store %w, %y[%i] : !costate.array<f64, 1>
    ```

    A gradient is made of what is left: the adjoint of `%v` is 0, and that of
    the element is cleared once. The primal stays what it is.
  }];
}

def ExpandFetches : Pass<"expand-fetches", "::costate::ir::KernelOp"> {
  let summary = "loads and stores in the place of atomics that nobody interrupts";
  let description = [{
    In serial code, and where each work item of a range has elements of its own
    (see `mark-exclusive`):

    ```mlir
    // before
    %old = costate.atomic_fetch "add" %v, %x[%i] : !costate.array<f64, 1>
    // after
    %old = costate.load %x[%i] : !costate.array<f64, 1>
    costate.atomic_add %v, %x[%i] : !costate.array<f64, 1>
    ```

    These have derivatives, and can be made again in a forward sweep.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MarkExclusive : Pass<"mark-exclusive", "::costate::ir::KernelOp"> {
  let summary = "find updates that need not be atomic";
  let description = [{
    An update is exclusive if, for every index of its range, all accesses of the
    array in that range use, in one dimension, the same multiple of the index
    plus constants that differ by less than the multiple.

    ```mlir
    costate.atomic_add %v, %x[%i] : !costate.array<f64, 1>            // before
    costate.atomic_add exclusive %v, %x[%i] : !costate.array<f64, 1>  // after
    ```
  }];
}

def ChooseRemainders : Pass<"choose-remainders", "::costate::ir::KernelOp"> {
  let summary = "choices instead of the remainders of neighbours' indices";
  let description = [{
    A remainder takes as long as many additions, and is no vector code. Where an
    index of a range is below the divisor, `(i + 1) % n` has two steps.

    ```mlir
    costate.range (%i) in (%n) {                    // before
      %j = arith.addi %i, %c1 : i64
      %k = costate.rem %j, %n : i64
      %v = costate.load %x[%k] : !costate.array<f64, 1>
      costate.store %v, %y[%i] : !costate.array<f64, 1>
    }

    %m = arith.subi %n, %c1 : i64                   // after
    %d = arith.subi %c1, %n : i64
    costate.range (%i) in (%n) {
      %j = arith.addi %i, %c1 : i64
      %b = arith.addi %i, %d : i64
      %is = arith.cmpi sge, %i, %m : i64
      %k = arith.select %is, %b, %j : i64
      ...
    }
    ```

    Where extents, which the host knows, decide whether that is right, both are
    there. With `splits`, code without loops and branches is there once more,
    for the interior along the last index (`costate.interior`): neighbours there
    are neighbours in memory.
  }];
  let options = [Option<"splits", "splits", "bool", "false",
      "the interior has code of its own">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def GatherAdditions : Pass<"gather-additions", "::costate::ir::KernelOp"> {
  let summary = "ranges over elements instead of additions to those of neighbours";
  let description = [{
    Where a work item adds to adjoints whose indices differ from its own by
    constants, or are remainders or clamped, a range over the elements adds up
    what the work items around each element have for it. Values of these are
    computed again. Additions to an element come in the order of the work items,
    from nobody else. What else the range does remains in it, and comes after.

    ```mlir
    costate.range (%i) in (%n) {                                  // before
      %k = arith.addi %i, %c1 : i64
      %g = costate.load %y_grad[%i] : !costate.array<f64, 1>
      costate.store %zero, %y_grad[%i] : !costate.array<f64, 1>
      costate.atomic_add %g, %x_grad[%i] : !costate.array<f64, 1>
      costate.atomic_add %g, %x_grad[%k] : !costate.array<f64, 1>
    }

    costate.range (%e) in (%n_and_1) attributes {costate.gather} {    // after
      %k = arith.subi %e, %c1 : i64
      scf.if %exist_both {
        %a = costate.load %y_grad[%e] : !costate.array<f64, 1>
        %b = costate.load %y_grad[%k] : !costate.array<f64, 1>
        %old = costate.load %x_grad[%e] : !costate.array<f64, 1>
        %s = arith.addf %old, %b : f64
        %t = arith.addf %s, %a : f64
        costate.store %t, %x_grad[%e] : !costate.array<f64, 1>
      } else {
        ... // each if it exists
      } {costate.interior}
    }
    costate.range (%i) in (%n) {
      costate.store %zero, %y_grad[%i] : !costate.array<f64, 1>
    }
    ```

    Where extents, which the host knows, decide whether that is right, both are
    there. With `numbered`, which is for GPUs, the new range counts the elements
    of the interior first and then those of the border, so that the threads of a
    warp do the same. The border asks for nothing between its loads then: the
    nearest work item stands in for one that does not exist, and what it has is
    not selected. Where several work items may add to one element of the border,
    as with clamped indices, each is asked for.
  }];
  let options = [Option<"numbered", "numbered", "bool", "false",
      "elements of the interior come before those of the border">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif
