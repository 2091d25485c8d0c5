/// The rule of `costate.custom`: what its second region computes.

#include "autodiff/rules/Tables.h"
#include "ir/Kernel.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace costate::autodiff {
namespace {

/// The values of the block around `wanted` that it is computed from.
llvm::SetVector<Value> sliceOf(Value wanted) {
  llvm::SetVector<Value> slice;
  slice.insert(wanted);
  for (size_t k = 0; k < slice.size(); ++k)
    if (Operation *op = slice[k].getDefiningOp())
      slice.insert(op->operand_begin(), op->operand_end());
  return slice;
}

/// Arguments that the derivative does not use are not asked for.
Factor customRule(const RuleArguments &a, unsigned index) {
  auto custom = cast<ir::CustomOp>(a.op);
  Block &block = custom.getPartials().front();
  Value wanted = custom.getPartial(index);
  llvm::SetVector<Value> slice = sliceOf(wanted);
  IRMapping known;
  for (BlockArgument argument : block.getArguments())
    if (slice.contains(argument)) {
      unsigned number = argument.getArgNumber();
      bool isInput = number < custom.getInputs().size();
      known.map(argument, isInput ? a.operand(number) : a.result());
    }
  for (Operation &op : block.without_terminator())
    if (llvm::any_of(op.getResults(),
                     [&](Value value) { return slice.contains(value); }))
      a.b.clone(op, known);
  return times(known.lookup(wanted));
}

} // namespace

void addCustomRule(llvm::StringMap<Rule> &rules) {
  rules["costate.custom"] = customRule;
}

} // namespace costate::autodiff
