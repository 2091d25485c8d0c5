#ifndef COSTATE_IR_BLOCKOPS
#define COSTATE_IR_BLOCKOPS

include "KernelOps.td"

def Costate_SharedOp : Costate_Op<"shared"> {
  let summary = "an array that the work items of a block share";
  let description = [{
    A block is so many neighbouring work items of a range as its
    `costate.block_dim` says. What the elements are at first is left open; the
    array is there as long as the work items run. `local_load` and `local_store`
    access it, as if it were private.

    ```mlir
    %a = costate.shared : !costate.local<f32, 128>
    costate.local_store %v, %a[%i] : !costate.local<f32, 128>
    costate.group "block.sync" () : () -> ()
    %w = costate.local_load %a[%j] : !costate.local<f32, 128>
    ```
  }];
  let results = (outs Res<Costate_Local, "", [MemAlloc]>:$local);
  let assemblyFormat = "attr-dict `:` qualified(type($local))";
  let hasVerifier = 1;
}

def Costate_SharedUpdateOp : Costate_Op<"shared_update", [
    TypesMatchWith<"the value has the type of the elements", "local", "value",
                   "::llvm::cast<LocalType>($_self).getValueType()">,
    TypesMatchWith<"the result has the type of the elements", "local", "old",
                   "::llvm::cast<LocalType>($_self).getValueType()">]> {
  let summary = "update one element of a shared array, as one indivisible step, and tell what it was";
  let description = "Kinds: those of `atomic_fetch` but `exchange`.";
  let arguments = (ins StrAttr:$kind, Costate_Value:$value,
                       Arg<Costate_Local, "", [MemRead, MemWrite]>:$local, I64:$index);
  let results = (outs Costate_Value:$old);
  let assemblyFormat = [{
    $kind $value `,` $local `[` $index `]` attr-dict `:` qualified(type($local))
  }];
  let hasVerifier = 1;
}

def Costate_GroupOp : Costate_Op<"group", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what work items of a block, or those that are lanes of a warp, do together";
  let description = [{
    The operations, their operands and results are the rows of
    `costate/detail/group_operations.def`. 32 neighbouring work items of a block
    are a warp; the first operand of operations of warps is the mask of the
    lanes that do them together, each of which comes to this operation.

    ```mlir
    %other = costate.group "warp.shuffle_down" (%mask, %x, %delta) : (i32, f32, i32) -> f32
    ```
  }];
  let arguments = (ins StrAttr:$kind, Variadic<Costate_Value>:$values);
  let results = (outs Variadic<Costate_Value>:$results);
  let assemblyFormat = "$kind `(` $values `)` attr-dict `:` functional-type($values, $results)";
  let hasVerifier = 1;
}

#endif
