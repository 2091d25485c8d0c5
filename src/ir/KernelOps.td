#ifndef COSTATE_IR_KERNELOPS
#define COSTATE_IR_KERNELOPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"

def Costate_Dialect : Dialect {
  let name = "costate";
  let cppNamespace = "::costate::ir";
  let summary = "kernels, parallel ranges and arrays";
  let description = [{
    A kernel is a list of serial statements and parallel ranges over typed
    arrays. Scalar arithmetic comes from `arith` and `math`, control flow from
    `scf`; this dialect adds what those lack or define differently: arrays,
    ranges, and integer operations that are total.

    Integers are signless; the dtype of an array says whether its elements are
    unsigned (`!costate.array<ui32, 1>`). Every index and extent is an i64.

    Numbers narrower than 32 bits exist in memory only: what a kernel computes
    with is an i32 or f32 that holds such a number, and `costate.narrow` makes
    one of any other.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;
  let hasOperationAttrVerify = 1;
}

class Costate_Op<string mnemonic, list<Trait> traits = []>
    : Op<Costate_Dialect, mnemonic, traits>;

def Costate_Array : TypeDef<Costate_Dialect, "Array"> {
  let mnemonic = "array";
  let summary = "a contiguous row-major array of run-time extents";
  let description = [{
    `!costate.array<f64, 2>`: element type `i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64
    f16 f32 f64`, rank 0 to 8. A bool takes one byte. Arrays of one kernel do not
    overlap when one of them is written. Narrow elements are loaded as an i32 or
    f32; what is stored or added is narrowed as by `costate.narrow`.
  }];
  let parameters = (ins "::mlir::Type":$elementType, "unsigned":$rank);
  let assemblyFormat = "`<` $elementType `,` $rank `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The type of a loaded value.
    ::mlir::Type getValueType() const;
    /// The type of an array of adjoints or tangents: those of f16 are f32.
    ArrayType getDerivative() const;
    int64_t elementBytes() const { return (getElementType().getIntOrFloatBitWidth() + 7) / 8; }
    bool isFloat() const { return ::mlir::isa<::mlir::FloatType>(getElementType()); }
  }];
}

def Costate_Local : TypeDef<Costate_Dialect, "Local"> {
  let mnemonic = "local";
  let summary = "a private array of one work item, or of the serial code";
  let description = [{
    `!costate.local<f64, 8>`: elements like those of arrays, and how many there
    are: 1 or more, of 64 KiB at most.
  }];
  let parameters = (ins "::mlir::Type":$elementType, "int64_t":$size);
  let assemblyFormat = "`<` $elementType `,` $size `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The most bytes of one private array.
    static constexpr int64_t mostBytes = 1 << 16;
    /// The type of a loaded value.
    ::mlir::Type getValueType() const;
    /// The type of a private array of adjoints or tangents.
    LocalType getDerivative() const;
    int64_t elementBytes() const { return (getElementType().getIntOrFloatBitWidth() + 7) / 8; }
    int64_t bytes() const { return getSize() * elementBytes(); }
    bool isFloat() const { return ::mlir::isa<::mlir::FloatType>(getElementType()); }
  }];
}

def Costate_Float : AnyTypeOf<[F32, F64], "f32 or f64">;
def Costate_Int : AnyTypeOf<[I32, I64], "i32 or i64">;
/// Of the lanes of a CPU (`form-lanes`): a number, or one for each lane.
def Costate_Floats : AnyTypeOf<[F32, F64, VectorOfRankAndType<[1], [F32, F64]>],
                               "f32 or f64">;
def Costate_Ints : AnyTypeOf<[I32, I64, VectorOfRankAndType<[1], [I32, I64]>],
                             "i32 or i64">;
def Costate_Value : AnyTypeOf<[I1, I32, I64, F32, F64], "a scalar of a kernel">;

//===-- Kernels and ranges ------------------------------------------------===//

def Costate_KernelOp : Costate_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope,
    SingleBlockImplicitTerminator<"ReturnOp">]> {
  let summary = "a kernel: serial statements and parallel ranges";
  let description = [{
    Arguments are arrays and scalars. The body is one block; its ranges stand
    directly in it, in the order in which they run.

    ```mlir
    costate.kernel @scale(%x: !costate.array<f64, 1>, %s: f64) {
      %n = costate.extent %x[0] : !costate.array<f64, 1>
      costate.range (%i) in (%n) {
        %v = costate.load %x[%i] : !costate.array<f64, 1>
        %w = arith.mulf %v, %s : f64
        costate.store %w, %x[%i] : !costate.array<f64, 1>
      }
    }
    ```

    Values are arrays, which are arguments and nothing else, or scalars of type
    i1, i32, i64, f32 or f64; loops may count in `index`.

    An argument of a derived kernel that holds adjoints or tangents carries
    `costate.adjoint_of` or `costate.tangent_of`: the number of the argument
    that it belongs to. Likewise `costate.version_of` marks what the argument
    held before the part of the primal with the number `costate.part`, and
    `costate.scratch_of` a copy of it to work on, and `costate.owners_of` an
    array of i64 of its shape, for the work items that write its elements.

    `costate.extents` are the extents of an array that are known: no other array
    is bound, and addresses are computed with constants.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getRegion(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Costate_ReturnOp : Costate_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "end of a kernel";
  let assemblyFormat = "attr-dict";
}

def Costate_RangeOp : Costate_Op<"range", [
    RecursiveMemoryEffects, AutomaticAllocationScope,
    DeclareOpInterfaceMethods<LoopLikeOpInterface, ["getLoopRegions"]>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "independent work items over a box of indices";
  let description = [{
    Runs the body once for every index tuple below the extents, in any order
    and at the same time. An extent below 0 counts as 0. Each result is the sum
    over all work items of what they yield, added in an order that depends on
    the extents only. Results are all floats, which are added in f64, or all
    i64. With `minima` they are two i64: the least key, and the least place of
    those that come with this key; both 2^63 - 1 if there are none.

    ```mlir
    %sum = costate.range (%i, %j) in (%n, %m) -> (f64) {
      ...
      costate.yield %v : f64
    }
    ```
  }];
  let arguments = (ins Variadic<I64>:$extents, UnitAttr:$minima);
  let results = (outs Variadic<AnyTypeOf<[F32, F64, I64]>>:$sums);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$extents,
                                 CArg<"::mlir::TypeRange", "{}">:$sums)>];
  let extraClassDeclaration = [{
    ::mlir::ValueRange getIndices() { return getBody()->getArguments(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Costate_SerialOp : Costate_Op<"serial", [
    RecursiveMemoryEffects, AutomaticAllocationScope,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a piece of serial code that one thread of a device runs";
  let description = [{
    Where host code drives a kernel, serial code that touches memory or computes
    with floats stands in such regions. Results stay on the device unless the
    host needs them. `afterPivot` marks what belongs to the reverse sweep.

    ```mlir
    %s = costate.serial -> f64 {
      %v = costate.load %x[%zero] : !costate.array<f64, 1>
      %w = math.sin %v : f64
      costate.yield %w : f64
    }
    ```
  }];
  let arguments = (ins UnitAttr:$afterPivot);
  let results = (outs Variadic<Costate_Value>:$values);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "(`after_pivot` $afterPivot^)? (`->` type($values)^)? $bodyRegion attr-dict";
  let hasRegionVerifier = 1;
}

def Costate_YieldOp : Costate_Op<"yield", [Pure, Terminator,
    ParentOneOf<["RangeOp", "CustomOp", "SerialOp"]>]> {
  let summary = "end of a work item, with its contributions to the sums; of a region of `custom`; or of serial code";
  let arguments = (ins Variadic<Costate_Value>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_state; }]>];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

//===-- Arrays ------------------------------------------------------------===//

def Costate_ExtentOp : Costate_Op<"extent", [Pure]> {
  let summary = "the extent of an array in one dimension";
  let arguments = (ins Costate_Array:$array, I64Attr:$dim);
  let results = (outs I64:$extent);
  let assemblyFormat = "$array `[` $dim `]` attr-dict `:` qualified(type($array))";
  let hasVerifier = 1;
}

def Costate_ElementAccess : OpInterface<"ElementAccess"> {
  let cppNamespace = "::costate::ir";
  let description = "Loads, stores or updates one element of an array.";
  let methods = [
    InterfaceMethod<"", "::mlir::Value", "getArray">,
    InterfaceMethod<"", "::mlir::OperandRange", "getIndices">];
}

class Costate_AccessOp<string mnemonic, list<Trait> traits = []>
    : Costate_Op<mnemonic, !listconcat([Costate_ElementAccess], traits)> {
  let hasVerifier = 1;
}

def Costate_LoadOp : Costate_AccessOp<"load", [
    TypesMatchWith<"the result has the value type of the array", "array", "value",
                   "::llvm::cast<ArrayType>($_self).getValueType()">]> {
  let summary = "read one element";
  let arguments = (ins Arg<Costate_Array, "", [MemRead]>:$array,
                       Variadic<I64>:$indices);
  let results = (outs Costate_Value:$value);
  let assemblyFormat = "$array `[` $indices `]` attr-dict `:` qualified(type($array))";
}

def Costate_StoreOp : Costate_AccessOp<"store", [
    TypesMatchWith<"the value has the value type of the array", "array", "value",
                   "::llvm::cast<ArrayType>($_self).getValueType()">]> {
  let summary = "overwrite one element";
  let arguments = (ins Costate_Value:$value,
                       Arg<Costate_Array, "", [MemWrite]>:$array,
                       Variadic<I64>:$indices);
  let assemblyFormat = "$value `,` $array `[` $indices `]` attr-dict `:` qualified(type($array))";
}

/// An update is one indivisible step. With `exclusive` no other work item of
/// the range touches the element, so a plain load and store does the same.
class Costate_UpdateOp<string mnemonic> : Costate_AccessOp<mnemonic, [
    TypesMatchWith<"the value has the value type of the array", "array", "value",
                   "::llvm::cast<ArrayType>($_self).getValueType()">]> {
  let arguments = (ins Costate_Value:$value,
                       Arg<Costate_Array, "", [MemRead, MemWrite]>:$array,
                       Variadic<I64>:$indices, UnitAttr:$exclusive);
  let assemblyFormat = [{
    (`exclusive` $exclusive^)? $value `,` $array `[` $indices `]` attr-dict `:` qualified(type($array))
  }];
}

def Costate_AtomicAddOp : Costate_UpdateOp<"atomic_add"> {
  let summary = "add to one element, as one indivisible step";
  let description = [{
    With `exclusive` no other work item of the range touches the element, so a
    plain load, addition and store does the same.
  }];
}
def Costate_AtomicMinOp : Costate_UpdateOp<"atomic_min"> {
  let summary = "replace one element by its minimum with a value, as one indivisible step";
  let description = [{
    NaN counts as missing, and -0 as less than 0: the element that remains does
    not depend on the order of the updates. The dtype of the array says whether
    integers have a sign. `exclusive` as in `atomic_add`. Where elements are
    narrow, the value is one of their numbers.
  }];
}
def Costate_AtomicMaxOp : Costate_UpdateOp<"atomic_max"> {
  let summary = "replace one element by its maximum with a value, as one indivisible step";
  let description = "Like `atomic_min`.";
}

def Costate_AtomicTakeOp : Costate_AccessOp<"atomic_take", [
    TypesMatchWith<"the result has the value type of the array", "array", "value",
                   "::llvm::cast<ArrayType>($_self).getValueType()">]> {
  let summary = "read one element and leave 0, as one indivisible step";
  let description = [{
    Of several work items that take one element, one gets it and the others
    get 0: how the adjoint of a minimum goes to one of those that have it.
    `exclusive` as in `atomic_add`.

    ```mlir
    %g = costate.atomic_take %y_grad[%j] : !costate.array<f64, 1>
    ```
  }];
  let arguments = (ins Arg<Costate_Array, "", [MemRead, MemWrite]>:$array,
                       Variadic<I64>:$indices, UnitAttr:$exclusive);
  let results = (outs Costate_Float:$value);
  let assemblyFormat = [{
    (`exclusive` $exclusive^)? $array `[` $indices `]` attr-dict `:` qualified(type($array))
  }];
}

def Costate_AtomicFetchOp : Costate_AccessOp<"atomic_fetch", [
    TypesMatchWith<"the value has the value type of the array", "array", "value",
                   "::llvm::cast<ArrayType>($_self).getValueType()">,
    TypesMatchWith<"the result has the value type of the array", "array", "old",
                   "::llvm::cast<ArrayType>($_self).getValueType()">]> {
  let summary = "update one element, as one indivisible step, and tell what it was";
  let description = [{
    Kinds: `add`, `min` and `max` as `atomic_add`, `atomic_min` and
    `atomic_max`; `mul` multiplies; `and`, `or`, `xor` of integers and bools;
    `exchange` stores the value.
    Where no other work item interferes, `expand-fetches` makes a load and a
    store of it.

    ```mlir
    %slot = costate.atomic_fetch "add" %one, %count[] : !costate.array<i64, 0>
    ```
  }];
  let arguments = (ins StrAttr:$kind, Costate_Value:$value,
                       Arg<Costate_Array, "", [MemRead, MemWrite]>:$array,
                       Variadic<I64>:$indices);
  let results = (outs Costate_Value:$old);
  let assemblyFormat = [{
    $kind $value `,` $array `[` $indices `]` attr-dict `:` qualified(type($array))
  }];
}

def Costate_CompareExchangeOp : Costate_AccessOp<"compare_exchange", [
    TypesMatchWith<"the value has the value type of the array", "array", "desired",
                   "::llvm::cast<ArrayType>($_self).getValueType()">,
    TypesMatchWith<"the value has the value type of the array", "array", "expected",
                   "::llvm::cast<ArrayType>($_self).getValueType()">,
    TypesMatchWith<"the result has the value type of the array", "array", "old",
                   "::llvm::cast<ArrayType>($_self).getValueType()">]> {
  let summary = "store into an element that has given bits, as one indivisible step";
  let description = [{
    Stores `desired` if the element has the bits of `expected`, and tells what
    it was. Floats are compared by their bits, so that a loop that tries again
    ends, also for NaN.

    ```mlir
    %old = costate.compare_exchange %desired if %expected, %x[%i] : !costate.array<f64, 1>
    ```
  }];
  let arguments = (ins Costate_Value:$desired, Costate_Value:$expected,
                       Arg<Costate_Array, "", [MemRead, MemWrite]>:$array,
                       Variadic<I64>:$indices);
  let results = (outs Costate_Value:$old);
  let assemblyFormat = [{
    $desired `if` $expected `,` $array `[` $indices `]` attr-dict `:` qualified(type($array))
  }];
}

def Costate_CopyOp : Costate_Op<"copy", [HasParent<"KernelOp">,
    AllTypesMatch<["from", "to"]>]> {
  let summary = "all elements of one array into another of the same extents";
  let arguments = (ins Arg<Costate_Array, "", [MemRead]>:$from,
                       Arg<Costate_Array, "", [MemWrite]>:$to);
  let assemblyFormat = "$from `to` $to attr-dict `:` qualified(type($from))";
}

//===-- Private arrays ----------------------------------------------------===//

def Costate_LocalOp : Costate_Op<"local"> {
  let summary = "a private array whose elements are 0";
  let description = [{
    It lives until the end of the block that it stands in; where that block runs
    again, it is another one. A range has no access to those of serial code.

    ```mlir
    %a = costate.local : !costate.local<f64, 8>
    costate.local_store %v, %a[%i] : !costate.local<f64, 8>
    %w = costate.local_load %a[%j] : !costate.local<f64, 8>
    ```
  }];
  let results = (outs Res<Costate_Local, "", [MemAlloc, MemWrite]>:$local);
  let assemblyFormat = "attr-dict `:` qualified(type($local))";
  let hasVerifier = 1;
}

class Costate_LocalAccessOp<string mnemonic>
    : Costate_Op<mnemonic, [
        TypesMatchWith<"the value has the type of the elements", "local", "value",
                       "::llvm::cast<LocalType>($_self).getValueType()">]>;

def Costate_LocalLoadOp : Costate_LocalAccessOp<"local_load"> {
  let summary = "read one element of a private array";
  let arguments = (ins Arg<Costate_Local, "", [MemRead]>:$local, I64:$index);
  let results = (outs Costate_Value:$value);
  let assemblyFormat = "$local `[` $index `]` attr-dict `:` qualified(type($local))";
}

def Costate_LocalStoreOp : Costate_LocalAccessOp<"local_store"> {
  let summary = "overwrite one element of a private array";
  let arguments = (ins Costate_Value:$value,
                       Arg<Costate_Local, "", [MemWrite]>:$local, I64:$index);
  let assemblyFormat = "$value `,` $local `[` $index `]` attr-dict `:` qualified(type($local))";
}

def Costate_LocalClearOp : Costate_Op<"local_clear"> {
  let summary = "all elements of a private array become 0";
  let arguments = (ins Arg<Costate_Local, "", [MemWrite]>:$local);
  let assemblyFormat = "$local attr-dict `:` qualified(type($local))";
}

//===-- Total integer operations ------------------------------------------===//

class Costate_IntBinaryOp<string mnemonic>
    : Costate_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let arguments = (ins Costate_Ints:$lhs, Costate_Ints:$rhs, UnitAttr:$isUnsigned);
  let results = (outs Costate_Ints:$result);
  let assemblyFormat = [{
    (`unsigned` $isUnsigned^)? $lhs `,` $rhs attr-dict `:` type($result)
  }];
  let hasFolder = 1;
}

def Costate_DivOp : Costate_IntBinaryOp<"div"> {
  let summary = "quotient, rounded towards zero; 0 for a divisor of 0; MIN / -1 = MIN";
}
def Costate_RemOp : Costate_IntBinaryOp<"rem"> {
  let summary = "a - div(a, b) * b, with the sign of a; 0 for a divisor of 0";
}
def Costate_ShlOp : Costate_IntBinaryOp<"shl"> {
  let summary = "shift left; the count is taken modulo the width";
}
def Costate_ShrOp : Costate_IntBinaryOp<"shr"> {
  let summary = "shift right, arithmetic unless unsigned; the count is taken modulo the width";
}

def Costate_ToIntOp : Costate_Op<"to_int", [Pure]> {
  let summary = "float to integer, towards zero, saturating; NaN gives 0";
  let arguments = (ins Costate_Floats:$value, UnitAttr:$isUnsigned);
  let results = (outs Costate_Ints:$result);
  let assemblyFormat = [{
    (`unsigned` $isUnsigned^)? $value attr-dict `:` type($value) `to` type($result)
  }];
  let hasFolder = 1;
}

def Costate_NarrowOp : Costate_Op<"narrow", [Pure, InferTypeOpAdaptor]> {
  let summary = "the number of a narrow type that a value becomes";
  let description = [{
    An integer wraps around. A float is rounded to the nearest number, of two
    the even one, and beyond the largest to inf. The result is an i32 or f32
    that holds it.

    ```mlir
    %a = costate.narrow %i to ui8 : i32  // %i & 255
    %b = costate.narrow %x to f16 : f64  // an f32, rounded once
    ```
  }];
  let arguments = (ins AnyTypeOf<[I32, F32, F64,
                                  VectorOfRankAndType<[1], [I32, F32, F64]>],
                                 "i32, f32 or f64">:$value,
                       TypeAttr:$element);
  let results = (outs AnyTypeOf<[I32, F32,
                                 VectorOfRankAndType<[1], [I32, F32]>]>:$result);
  let assemblyFormat = "$value `to` $element attr-dict `:` type($value)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Costate_PhiloxOp : Costate_Op<"philox", [Pure]> {
  let summary = "64 random bits, a function of key, stream and counter";
  let description = [{
    The first two words, low word first, of Philox4x32-10 (Salmon et al.,
    "Parallel random numbers: as easy as 1, 2, 3", 2011) with the words of
    `counter` and then of `stream` as its counter. As a pure function it gives
    the same to any thread, and to a forward sweep that runs again.
  }];
  let arguments = (ins I64:$key, I64:$stream, I64:$counter);
  let results = (outs I64:$bits);
  let assemblyFormat = "$key `,` $stream `,` $counter attr-dict";
}

def Costate_TripCountOp : Costate_Op<"trip_count", [NoMemoryEffect]> {
  let summary = "trip count of a loop from `lo` to `hi` (excluded) by `step`";
  let description = [{
    ceil((hi - lo) / step) for a positive step, ceil((lo - hi) / -step) for a
    negative one, 0 if there is nothing between; an unsigned 64-bit number.
    A step of 0 is an error of the launch, so this op is not executed
    speculatively.
  }];
  let arguments = (ins I64:$lo, I64:$hi, I64:$step);
  let results = (outs I64:$count);
  let extraClassDeclaration = [{
    /// Whether the step is known not to be 0.
    bool cannotFail();
  }];
  let assemblyFormat = "$lo `to` $hi `by` $step attr-dict";
  let hasFolder = 1;
}

//===-- Float operations that other dialects lack -------------------------===//

def Costate_StrongMulOp : Costate_Op<"strong_mul", [Pure, SameOperandsAndResultType]> {
  let summary = "g * f, but 0, of either sign, wherever g is 0";
  let description = [{
    The product of every derivative rule: nothing comes out of a factor `f`
    that is inf or NaN when the adjoint or tangent `g` is 0. Its own derivative
    is `strong_mul(dg, f) + strong_mul(g, df)`, so it becomes a select only
    after all differentiation.

    With `symmetric` a factor of 0 wins over inf and NaN as well. That is the
    product `g * df` of its derivative, where both are adjoints or tangents.
  }];
  let arguments = (ins Costate_Floats:$g, Costate_Floats:$f, UnitAttr:$symmetric);
  let results = (outs Costate_Floats:$result);
  let assemblyFormat = [{
    (`symmetric` $symmetric^)? $g `,` $f attr-dict `:` type($result)
  }];
  let hasFolder = 1;
}

def Costate_StopGradientOp : Costate_Op<"stop_gradient", [Pure, SameOperandsAndResultType]> {
  let summary = "its operand, as a constant to every derivative";
  let arguments = (ins Costate_Floats:$value);
  let results = (outs Costate_Floats:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def Costate_ByOrderOp : Costate_Op<"by_order", [Pure, SameOperandsAndResultType]> {
  let summary = "operand k in a derivative of order k, the last one in higher ones";
  let description = [{
    The first operand is the value; each differentiation takes it away, unless
    it is the only one. A constant to every derivative.
  }];
  let arguments = (ins Variadic<Costate_Floats>:$values);
  let results = (outs Costate_Floats:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Costate_CustomOp : Costate_Op<"custom", [
    IsolatedFromAbove, RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "a function with partial derivatives of its own";
  let description = [{
    The first region computes the result from the arguments; it is not
    differentiated and saves nothing. The second one computes, from the
    arguments and the result, the partial derivative by each argument that is a
    float, in the type of the result; it is straight code, which is
    differentiated for derivatives of higher order. Regions use their arguments
    only, and no arrays.

    ```mlir
    // The positive root of y * y = x, however it is found.
    %y = costate.custom(%x) {
    ^bb0(%a: f64):
      %r = math.sqrt %a : f64
      costate.yield %r : f64
    } partials {
    ^bb0(%a: f64, %r: f64):
      %half = arith.constant 0.5 : f64
      %p = arith.divf %half, %r : f64
      costate.yield %p : f64
    } : (f64) -> f64
    ```
  }];
  let arguments = (ins Variadic<Costate_Value>:$inputs);
  let results = (outs Costate_Float:$result);
  let regions = (region SizedRegion<1>:$primal, SizedRegion<1>:$partials);
  let extraClassDeclaration = [{
    /// The value of the partial derivative by argument `index`, a float, as an
    /// operand of the terminator of `partials`.
    ::mlir::Value getPartial(unsigned index);
  }];
  let assemblyFormat = [{
    `(` $inputs `)` $primal `partials` $partials attr-dict `:`
    functional-type($inputs, $result)
  }];
  let hasRegionVerifier = 1;
}

/// Functions without folders: bits are those of the device, whether operands are
/// known or not. `math.sin` and the like become these when a kernel is read.
def Costate_IsFunction : NativeOpTrait<"IsFunction"> {
  let cppNamespace = "::costate::ir::OpTrait";
}
class Costate_FunctionOp<string mnemonic, string doc>
    : Costate_Op<mnemonic, [Pure, SameOperandsAndResultType, Costate_IsFunction]> {
  let summary = doc;
  let results = (outs Costate_Floats:$result);
}
class Costate_Function1<string mnemonic, string doc>
    : Costate_FunctionOp<mnemonic, doc> {
  let arguments = (ins Costate_Floats:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
class Costate_Function2<string mnemonic, string doc>
    : Costate_FunctionOp<mnemonic, doc> {
  let arguments = (ins Costate_Floats:$lhs, Costate_Floats:$rhs);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

include "ir/FunctionOps.td"

//===-- Messages ----------------------------------------------------------===//

def Costate_PrintOp : Costate_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "print a line";
  let description = [{
    In the text `{i}` stands for the next value as an integer, `{u}` as one
    without sign, `{b}` for a truth value, `{f}` for a float; `{{` and `}}` for
    braces. Kernel, place and work item are printed in front of it. The primal
    and forward derivatives print, gradients do not.

    ```mlir
    costate.print "x at {i}: {f}" %i, %x : i64, f64
    ```
  }];
  let arguments = (ins StrAttr:$text, Variadic<Costate_Value>:$values);
  let hasVerifier = 1;
  let assemblyFormat = "$text ($values^ `:` type($values))? attr-dict";
}

def Costate_AssertOp : Costate_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "in debug kernels, end the launch unless a condition holds";
  let description = [{
    The error has a text like that of `print`, with at most four values. Not in
    gradients; but with `refuses`, which is in all builds, a gradient that would
    depend on the order of work items ends with `CannotReplay`. `{e}` in its text
    names an element, by the numbers of an argument and, row-major, of the element.

    ```mlir
    costate.assert %positive, "{f} is not positive" %x : f64
    costate.assert refuses %same, "{e} is {f}" %argument, %element, %x : i64, i64, f64
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$text,
                       Variadic<Costate_Value>:$values, UnitAttr:$refuses);
  let hasVerifier = 1;
  let assemblyFormat = [{
    (`refuses` $refuses^)? $condition `,` $text
    ($values^ `:` type($values))? attr-dict
  }];
}

//===-- The search for inf and NaN ----------------------------------------===//

def Costate_CheckFiniteOp : Costate_Op<"check_finite", [
    AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "end the launch if finite numbers have given inf or NaN";
  let description = [{
    Ends the launch if `value` is inf or NaN, `condition` holds, and all
    `operandValues` are finite. In the text of the error, each % stands for the next
    of these and then for the value, and # for the work item:

    ```mlir
    costate.check_finite "log(%) gives %#; ..." %y if %c from %x : (f64) -> f64
    ```
  }];
  let arguments = (ins StrAttr:$text, Costate_Float:$value,
                       Optional<I1>:$condition, Variadic<Costate_Float>:$operandValues);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $text $value (`if` $condition^)? (`from` $operandValues^)? attr-dict `:`
    functional-type($operandValues, $value)
  }];
}

def Costate_CheckElementOp : Costate_Op<"check_element", [
    AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "end the launch if an element of an array is inf or NaN";
  let description = [{
    `value` has been loaded from the element. With `added` it is finite, or not
    to be checked, and has been added to the element, which is read again here.
    In the text of the error, @ stands for the element, % for the value (with
    `added` for the value and then for the element), and # for the work item.

    ```mlir
    costate.check_element "@ holds %#; ..." %v, %x[%i] if %c : f64, !costate.array<f64, 1>
    ```
  }];
  let arguments = (ins StrAttr:$text, Costate_Float:$value, Costate_Array:$array,
                       Variadic<I64>:$indices, Optional<I1>:$condition,
                       UnitAttr:$added);
  let hasVerifier = 1;
  let assemblyFormat = [{
    (`added` $added^)? $text $value `,` $array `[` $indices `]` (`if` $condition^)?
    attr-dict `:` type($value) `,` qualified(type($array))
  }];
}

#endif
