#include "autodiff/activity/Flow.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace costate::autodiff {

static SmallVector<Value> carriedBy(scf::ForOp loop, unsigned index) {
  return {loop.getResult(index), loop.getRegionIterArg(index),
          loop.getInitArgs()[index], loop.getYieldedValues()[index]};
}

static SmallVector<Value> forwardedBy(scf::WhileOp loop, unsigned index) {
  return {loop.getResult(index), loop.getAfterArguments()[index],
          loop.getConditionOp().getArgs()[index]};
}

static SmallVector<Value> sourcesOf(BlockArgument argument) {
  Operation *op = argument.getOwner()->getParentOp();
  unsigned index = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return index > 0 ? carriedBy(loop, index - 1) : SmallVector<Value>();
  auto loop = dyn_cast<scf::WhileOp>(op);
  if (!loop)
    return {};
  if (argument.getOwner() == loop.getAfterBody())
    return forwardedBy(loop, index);
  return {loop.getInits()[index], loop.getYieldOp().getOperand(index)};
}

static SmallVector<Value> sourcesOf(ir::RangeOp range, unsigned index) {
  SmallVector<Value> sources = {
      range.getBody()->getTerminator()->getOperand(index)};
  if (range.getMinima()) // a pair
    sources.push_back(range.getResult(1 - index));
  return sources;
}

SmallVector<Value> sourcesOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return sourcesOf(argument);
  unsigned index = cast<OpResult>(value).getResultNumber();
  Operation *op = value.getDefiningOp();
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.thenYield().getOperand(index),
            branch.elseYield().getOperand(index)};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return carriedBy(loop, index);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return forwardedBy(loop, index);
  if (auto range = dyn_cast<ir::RangeOp>(op))
    return sourcesOf(range, index);
  return {};
}

llvm::DenseMap<Value, SmallVector<Value>> flowsIn(Operation *root) {
  llvm::DenseMap<Value, SmallVector<Value>> flows;
  auto add = [&](ValueRange values) {
    for (Value value : values)
      for (Value source : sourcesOf(value))
        flows[source].push_back(value);
  };
  root->walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        add(block.getArguments());
    if (op->getNumRegions())
      add(op->getResults());
  });
  return flows;
}

} // namespace costate::autodiff
