#ifndef COSTATE_IR_TAPEOPS
#define COSTATE_IR_TAPEOPS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tape_Dialect : Dialect {
  let name = "tape";
  let cppNamespace = "::costate::tape";
  let summary = "what the forward sweep of a gradient saves for its reverse sweep";
  let description = [{
    One tape belongs to each work item of a range, and one to the serial code of
    a launch; which of the two is meant follows from where an op stands. A tape
    is last in, first out. A record holds the values that one execution of a
    nested region saves; its bools are packed into bits. Narrow numbers, and
    integers that have a small bound, become integers of 8, 16 or 32 bits after
    all differentiation (`pack-records`).

    Loops with records are *pairs*: the number in `tape.pair` says which loop
    of the reverse sweep undoes which one of the forward sweep.

    ```mlir
    scf.for %i = %0 to %n step %1 : i64 {
      tape.push record(0) %x : f64
    } {tape.pair = 0 : i64}
    tape.pivot
    scf.for %i = %0 to %n step %1 : i64 {
      %x = tape.pop record(0) : f64
    } {tape.pair = 0 : i64}
    ```
  }];
  let hasOperationAttrVerify = 1;
}

class Tape_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tape_Dialect, mnemonic, traits>;

def Tape_Memory : Resource<"::costate::tape::Memory">;
def Tape_Value : AnyTypeOf<[I1, I8, I16, I32, I64, F32, F64,
                            VectorOfRankAndType<[1], [I1, I8, I16, I32, I64, F32, F64]>],
                           "a scalar of a kernel">;

def Tape_PushOp : Tape_Op<"push", [MemoryEffects<[MemWrite<Tape_Memory>]>]> {
  let summary = "append one record";
  let description = [{
    Every `push` is undone by exactly one `pop` with the same types. The tape
    grows as needed; when memory runs out the launch fails with an error that
    names the place of this op.

    ```mlir
    tape.push record(0) %x, %taken : f64, i1       // forward sweep
    %x, %taken = tape.pop record(0) : f64, i1      // reverse sweep
    ```

    The number of a record names it within its kernel: the values of the one
    `pop` with that number are those of the one `push`. Without a number that
    is not known, and what is pushed has no derivative. A push or pop alone is
    never reached: a pass has seen that of the other one.
  }];
  let arguments = (ins Variadic<Tape_Value>:$values, OptionalAttr<I64Attr>:$record);
  let assemblyFormat = [{
    (`record` `(` $record^ `)`)? $values attr-dict `:` type($values)
  }];
  let hasVerifier = 1;
}

def Tape_PopOp : Tape_Op<"pop", [MemoryEffects<[MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "take the last record off";
  let arguments = (ins OptionalAttr<I64Attr>:$record);
  let results = (outs Variadic<Tape_Value>:$values);
  let assemblyFormat = [{
    (`record` `(` $record^ `)`)? attr-dict `:` type($values)
  }];
  let hasVerifier = 1;
}

def Tape_PlanOp : Tape_Op<"plan", [AttrSizedOperandSegments,
                                    MemoryEffects<[MemWrite<Tape_Memory>]>]> {
  let summary = "how the reverse of this block gets the values that it needs";
  let description = [{
    Stands at the end of a forward block whose values are not in scope in the
    reverse sweep. All that the reverse needs of that block is listed once:
    `saved` values are in its record, or leave a branch as its results;
    `recomputed` ones follow from others; `loaded` ones are loaded again;
    `inverted` ones count iterations, which the reverse sweep does as well;
    `behind` ones stand behind a checkpoint: a loop around them runs again, from
    what its iteration began with, and their copies in the reverse sweep have
    plans of their own. So is what these follow from; values of an enclosing
    block that has a plan are in that.

    ```mlir
    tape.push record(0) %a : f64
    tape.plan saved(%a : f64) recomputed(%b : f64) inverted(%k : i64) behind(%c : f64)
    ```

    The reverse sweep has been made by the plan; then it is of no use.
  }];
  let arguments = (ins Variadic<Tape_Value>:$saved, Variadic<Tape_Value>:$recomputed,
                       Variadic<Tape_Value>:$loaded, Variadic<Tape_Value>:$inverted,
                       Variadic<Tape_Value>:$behind);
  let assemblyFormat = [{
    (`saved` `(` $saved^ `:` type($saved) `)`)?
    (`recomputed` `(` $recomputed^ `:` type($recomputed) `)`)?
    (`loaded` `(` $loaded^ `:` type($loaded) `)`)?
    (`inverted` `(` $inverted^ `:` type($inverted) `)`)?
    (`behind` `(` $behind^ `:` type($behind) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tape_ScheduleOp : Tape_Op<"schedule", [AttrSizedOperandSegments,
                                            MemoryEffects<[MemWrite<Tape_Memory>]>]> {
  let summary = "which iterations of the next loop are saved, and which run again";
  let description = [{
    The part of the plan that is about a loop, the next one in the block.

    ```mlir
    tape.schedule keep
    tape.schedule segments(%count of %length) rest(%rest) in(%iterations)
    tape.schedule online
    ```

    `keep`: each iteration has a record. `segments`: the loop is one over
    `count` segments, of which each saves what it begins with; in it stands one
    over the `length` iterations of a segment, or over fewer in the last ones,
    which run again. The last `rest` of all `iterations` are in a loop behind
    it. `online`: segments of a length that is decided as the loop runs.
  }];
  let arguments = (ins Optional<I64>:$count, Optional<I64>:$length, Optional<I64>:$rest,
                       Optional<I64>:$iterations, UnitAttr:$online, UnitAttr:$keep);
  let assemblyFormat = [{
    (`keep` $keep^)? (`online` $online^)?
    (`segments` `(` $count^ `of` $length `)`)? (`rest` `(` $rest^ `)`)?
    (`in` `(` $iterations^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tape_PivotOp : Tape_Op<"pivot", [MemoryEffects<[MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "from the forward to the reverse sweep of a work item or of serial code";
  let description = [{
    Stands once in each work item, and once in the serial code, between the
    sweeps. A launch that only measures its tapes ends the work item here.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tape_BudgetOp : Tape_Op<"budget", [MemoryEffects<[MemRead<Tape_Memory>]>]> {
  let summary = "how many bytes the records of this work item may take";
  let description = [{
    The same during a launch. Loops that are cut by it keep as much as fits, and
    run the rest again; see `costate.rerun`.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$lanes);
  let results = (outs I64:$bytes);
  let assemblyFormat = "(`lanes` `(` $lanes^ `)`)? attr-dict";
}

def Tape_ClaimOp : Tape_Op<"claim", [MemoryEffects<[MemWrite<Tape_Memory>]>]> {
  let summary = "the reverse sweep needs as many bytes more than are on the tape here";
  let description = [{
    For launches that measure a tape: they run only the forward sweep, and what
    runs again in the reverse sweep may save more than that leaves free. Nothing
    else happens.
  }];
  let arguments = (ins I64:$bytes);
  let assemblyFormat = "$bytes attr-dict";
}

//===-- Rows of a warp ----------------------------------------------------===//

def Tape_Warp : Resource<"::costate::tape::Warp">;

def Tape_ActiveOp : Tape_Op<"active", [Pure]> {
  let summary = "whether this lane has a work item";
  let description = [{
    Ranges that are marked `costate.tiles` run in warps, each with
    one tape: rows of words of 4 bytes, one for each lane. All lanes of a warp
    come to the same operations of a warp; those without a work item as well.
  }];
  let results = (outs I1:$active);
  let assemblyFormat = "attr-dict";
}

def Tape_RowsOp : Tape_Op<"rows", [Pure]> {
  let summary = "how many rows the tape of this warp has";
  let results = (outs I32:$rows);
  let assemblyFormat = "attr-dict";
}

def Tape_LowMemoryOp : Tape_Op<"low_memory", [Pure]> {
  let summary = "whether a loop should take the minimum of rows, for those after it";
  let results = (outs I1:$lowMemory);
  let assemblyFormat = "attr-dict";
}

def Tape_SufficientOp : Tape_Op<"sufficient", [Pure]> {
  let summary = "whether the rows are enough for all loops";
  let results = (outs I1:$sufficient);
  let assemblyFormat = "attr-dict";
}

def Tape_DrainsOp : Tape_Op<"drains", [Pure]> {
  let summary = "whether this launch runs what has fitted nowhere else";
  let results = (outs I1:$drains);
  let assemblyFormat = "attr-dict";
}

def Tape_FenceOp : Tape_Op<"fence", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>,
                                                    MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "rows that lanes of the warp have used may now hold other records";
  let assemblyFormat = "attr-dict";
}

def Tape_AheadOp : Tape_Op<"ahead", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>,
                                                    MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "what was read from rows is loaded before what follows is computed";
  let description = "All lanes of the warp come to it.";
  let assemblyFormat = "attr-dict";
}

def Tape_WarpMaxOp : Tape_Op<"warp_max", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>]>]> {
  let summary = "the largest of an unsigned number over the lanes of a warp";
  let arguments = (ins I32:$value);
  let results = (outs I32:$max);
  let assemblyFormat = "$value attr-dict";
}

def Tape_WriteOp : Tape_Op<"write", [MemoryEffects<[MemWrite<Tape_Memory>]>]> {
  let summary = "what this lane keeps in some rows";
  let description = [{
    Values of 8 bytes take two rows, of 4 bytes one; smaller ones share words.

    ```mlir
    tape.write %x, %taken at %row : f64, i1   // rows %row to %row + 2
    ```
  }];
  let arguments = (ins Variadic<Tape_Value>:$values, I32:$row);
  let assemblyFormat = "$values `at` $row attr-dict `:` type($values)";
}

def Tape_ReadOp : Tape_Op<"read", [MemoryEffects<[MemRead<Tape_Memory>]>]> {
  let summary = "what this lane has kept in some rows";
  let arguments = (ins I32:$row);
  let results = (outs Variadic<Tape_Value>:$values);
  let assemblyFormat = "$row attr-dict `:` type($values)";
}

def Tape_KeptOp : Tape_Op<"kept", [Pure]> {
  let summary = "how many first iterations of a loop a tape that is too short keeps";
  let description = [{
    The other ones are recomputed, piece by piece, from checkpoints of
    `checkpoint` rows; an iteration takes `unit` rows at most. All ones: even so
    `rows` rows are too few.
  }];
  let arguments = (ins I32:$iterations, I32:$unit, I32:$checkpoint, I32:$rows);
  let results = (outs I32:$kept);
  let assemblyFormat = "operands attr-dict";
}

def Tape_SegmentOp : Tape_Op<"segment", [Pure]> {
  let summary = "iterations from one checkpoint to the next, of a rest of `iterations`";
  let arguments = (ins I32:$iterations, I32:$unit, I32:$checkpoint);
  let results = (outs I32:$segment);
  let assemblyFormat = "operands attr-dict";
}

def Tape_MinRowsOp : Tape_Op<"min_rows", [Pure]> {
  let summary = "the minimum of rows that a loop can do with";
  let arguments = (ins I32:$iterations, I32:$unit, I32:$checkpoint);
  let results = (outs I32:$rows);
  let assemblyFormat = "operands attr-dict";
}

def Tape_ExpectOp : Tape_Op<"expect"> {
  let summary = "what the host knows of the tapes of the range after it";
  let description = [{
    No tile needs more than `need` rows, and `minRows` are enough. Stands right
    in front of a range, where all its loops that push have bounds from outside
    of it.
  }];
  let arguments = (ins I64:$need, I64:$minRows);
  let assemblyFormat = "operands attr-dict";
}

def Tape_DepthOp : Tape_Op<"depth", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>]>]> {
  let summary = "how many iterations the loops of a work item will take, about";
  let description = [{
    Stands in ranges that run in tiles; only what it follows from is before it.
    Work items may be sorted by it. `iteration`: issue slots of a lane for each
    iteration; `uncoalesced_work_item`, `uncoalesced_iteration`: what a work
    item and an iteration lose if lanes have work items that are not neighbours
    in memory.
  }];
  let arguments = (ins I64:$iterations, I64Attr:$iteration, I64Attr:$uncoalesced_work_item,
                       I64Attr:$uncoalesced_iteration);
  let assemblyFormat = [{
    $iterations `cost` `(` $iteration `,` $uncoalesced_work_item `,`
    $uncoalesced_iteration `)` attr-dict
  }];
}

def Tape_ReportOp : Tape_Op<"report", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>]>]> {
  let summary = "what the forward sweep of a tile has come to";
  let description = [{
    Stands in the place of `tape.pivot`. `need`: rows that would keep everything;
    `minRows`: with recomputation. A tile that does not fit runs again later.
  }];
  let arguments = (ins I1:$fits, I32:$need, I32:$minRows);
  let assemblyFormat = "operands attr-dict";
}

#endif
