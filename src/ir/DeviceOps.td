#ifndef COSTATE_IR_DEVICEOPS
#define COSTATE_IR_DEVICEOPS

include "KernelOps.td"

def Costate_DeviceFunctionOp : Costate_Op<"device_function", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "what the host is told of a function of a device";
  let description = [{
    Of each range and serial part of a kernel, in the order of the numbers by
    which host code calls them. Beside `symbol` and `measure`, functions of the
    module, the attributes are those of `code/DeviceCode.h`, which says what they
    mean. They are there until the module becomes LLVM IR.

    ```mlir
    costate.device_function "sum.device0" {adds_up, collective, block_dim = 0 : i64, ...}
    ```
  }];
  let arguments = (ins
    StrAttr:$symbol, StrAttr:$measure, StrAttr:$obstacle,
    UnitAttr:$pushes, UnitAttr:$counts, UnitAttr:$dry_run, UnitAttr:$measured_in_place,
    I64Attr:$need_word, I64Attr:$budget_word,
    UnitAttr:$serial, UnitAttr:$after_pivot, UnitAttr:$effects, UnitAttr:$ordered,
    UnitAttr:$collective, I64Attr:$block_dim, UnitAttr:$has_blocks, I64Attr:$shared_bytes,
    UnitAttr:$adds_in_block, UnitAttr:$adds_up, UnitAttr:$accumulates,
    UnitAttr:$tiles, UnitAttr:$drains, UnitAttr:$expensive, UnitAttr:$moderately_expensive,
    I64Attr:$iteration_rows, OptionalAttr<DenseI64ArrayAttr>:$sort_costs,
    I64Attr:$sums, I64Attr:$sum_slot, UnitAttr:$least, UnitAttr:$one_sum,
    I64Attr:$words, I64Attr:$site, I64Attr:$tape_site);
  let assemblyFormat = "$symbol attr-dict";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$symbol), [{
    $_state.getOrAddProperties<Properties>().symbol = $_builder.getStringAttr(symbol);
  }]>];
}

#endif
