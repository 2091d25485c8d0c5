#ifndef COSTATE_IR_TAPEOPS
#define COSTATE_IR_TAPEOPS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tape_Dialect : Dialect {
  let name = "tape";
  let cppNamespace = "::costate::tape";
  let summary = "what the forward sweep of a gradient saves for its reverse sweep";
  let description = [{
    One tape belongs to each iteration of a range, and one to the serial code of
    a launch; which of the two is meant follows from where an op stands. A tape
    is last in, first out. A record holds the values that one execution of a
    nested region saves; its bools are packed into bits.
  }];
}

class Tape_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tape_Dialect, mnemonic, traits>;

def Tape_Memory : Resource<"::costate::tape::Memory">;
def Tape_Value : AnyTypeOf<[I1, I32, I64, F32, F64], "a scalar of a kernel">;

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

def Tape_TurnOp : Tape_Op<"turn", [MemoryEffects<[MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "from the forward to the reverse sweep of an iteration or of serial code";
  let description = [{
    Stands once in each iteration, and once in the serial code, between the
    sweeps. A launch that only measures its tapes ends the iteration here.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

//===-- Rows of a warp ----------------------------------------------------===//

def Tape_Warp : Resource<"::costate::tape::Warp">;

def Tape_ActiveOp : Tape_Op<"active", [Pure]> {
  let summary = "whether this lane has an iteration";
  let description = [{
    Ranges that are marked `costate.tiles` run in warps of 32 lanes, each with
    one tape: rows of 32 words of 4 bytes, one for each lane. All lanes of a warp
    come to the same operations of a warp; those without iteration as well.
  }];
  let results = (outs I1:$active);
  let assemblyFormat = "attr-dict";
}

def Tape_RowsOp : Tape_Op<"rows", [Pure]> {
  let summary = "how many rows the tape of this warp has";
  let results = (outs I32:$rows);
  let assemblyFormat = "attr-dict";
}

def Tape_FrugalOp : Tape_Op<"frugal", [Pure]> {
  let summary = "whether a loop should take the fewest rows, for those behind it";
  let results = (outs I1:$frugal);
  let assemblyFormat = "attr-dict";
}

def Tape_AmpleOp : Tape_Op<"ample", [Pure]> {
  let summary = "whether the rows are enough for all loops";
  let results = (outs I1:$ample);
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
    Values of 8 bytes take two rows, of 4 bytes one; 32 bools share one.

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
  let summary = "how many first turns of a loop a tape that is too short keeps";
  let description = [{
    The other ones are recomputed, piece by piece, from checkpoints of
    `checkpoint` rows; a turn takes `unit` rows at most. All ones: even so
    `rows` rows are too few.
  }];
  let arguments = (ins I32:$turns, I32:$unit, I32:$checkpoint, I32:$rows);
  let results = (outs I32:$kept);
  let assemblyFormat = "operands attr-dict";
}

def Tape_SegmentOp : Tape_Op<"segment", [Pure]> {
  let summary = "turns from one checkpoint to the next, of a rest of `turns`";
  let arguments = (ins I32:$turns, I32:$unit, I32:$checkpoint);
  let results = (outs I32:$segment);
  let assemblyFormat = "operands attr-dict";
}

def Tape_FewestOp : Tape_Op<"fewest", [Pure]> {
  let summary = "the fewest rows that a loop can do with";
  let arguments = (ins I32:$turns, I32:$unit, I32:$checkpoint);
  let results = (outs I32:$rows);
  let assemblyFormat = "operands attr-dict";
}

def Tape_ExpectOp : Tape_Op<"expect"> {
  let summary = "what the host knows of the tapes of the range behind it";
  let description = [{
    No tile needs more than `need` rows, and `fewest` are enough. Stands right
    in front of a range, where all its loops that push have bounds from outside
    of it.
  }];
  let arguments = (ins I64:$need, I64:$fewest);
  let assemblyFormat = "operands attr-dict";
}

def Tape_DepthOp : Tape_Op<"depth", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>]>]> {
  let summary = "how many turns the loops of an iteration will take, about";
  let description = [{
    Stands in ranges that run in tiles; only what it follows from is before it.
    Iterations may be sorted by it. `turn`: issue slots of a lane for each turn;
    `stray_item`, `stray_turn`: what an iteration and a turn lose if lanes have
    iterations that are not neighbours in memory.
  }];
  let arguments = (ins I64:$turns, I64Attr:$turn, I64Attr:$stray_item, I64Attr:$stray_turn);
  let assemblyFormat = "$turns `cost` `(` $turn `,` $stray_item `,` $stray_turn `)` attr-dict";
}

def Tape_SettleOp : Tape_Op<"settle", [MemoryEffects<[MemRead<Tape_Warp>, MemWrite<Tape_Warp>]>]> {
  let summary = "what the forward sweep of a tile has come to";
  let description = [{
    Stands in the place of `tape.turn`. `need`: rows that would keep everything;
    `fewest`: with recomputation. A tile that does not fit runs again later.
  }];
  let arguments = (ins I1:$fits, I32:$need, I32:$fewest);
  let assemblyFormat = "operands attr-dict";
}

#endif
