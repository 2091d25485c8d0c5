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
}

def Tape_PopOp : Tape_Op<"pop", [MemoryEffects<[MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "take the last record off";
  let arguments = (ins OptionalAttr<I64Attr>:$record);
  let results = (outs Variadic<Tape_Value>:$values);
  let assemblyFormat = [{
    (`record` `(` $record^ `)`)? attr-dict `:` type($values)
  }];
}

def Tape_TurnOp : Tape_Op<"turn", [MemoryEffects<[MemRead<Tape_Memory>, MemWrite<Tape_Memory>]>]> {
  let summary = "from the forward to the reverse sweep of an iteration or of serial code";
  let description = [{
    Stands once in each iteration, and once in the serial code, between the
    sweeps. A launch that only measures its tapes ends the iteration here.
  }];
  let assemblyFormat = "attr-dict";
}

#endif
