#include "autodiff/forward/Forward.h"

#include "autodiff/rules/Rules.h"

using namespace mlir;

namespace costate::autodiff {

Forward::Forward(ir::KernelOp kernel,
                 llvm::DenseMap<Value, Value> tangentArrays)
    : kernel(kernel), tangentArrays(std::move(tangentArrays)),
      activity(kernel, [this](Value array) {
        return this->tangentArrays.contains(array);
      }) {}

LogicalResult Forward::run() { return block(kernel.getBodyRegion().front()); }

LogicalResult Forward::block(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &nested : block.without_terminator())
    ops.push_back(&nested);
  for (Operation *nested : ops)
    if (failed(op(nested)))
      return failure();
  return success();
}

LogicalResult Forward::op(Operation *op) {
  if (auto access = dyn_cast<ir::LoadOp>(op))
    load(access);
  else if (auto access = dyn_cast<ir::StoreOp>(op))
    store(access);
  else if (auto access = dyn_cast<ir::AtomicAddOp>(op))
    update(access);
  else if (op->getNumRegions())
    return region(op);
  else
    return scalar(op);
  return success();
}

Value Forward::tangentOf(Builder &b, Value value) {
  if (Value tangent = tangents.lookup(value))
    return tangent;
  return floatConstant(b, value.getType(), 0);
}

void Forward::load(ir::LoadOp load) {
  Value array = tangentArrays.lookup(load.getArray());
  if (!array)
    return;
  Builder b(load.getLoc(), load->getContext());
  b.setInsertionPointAfter(load);
  tangents[load.getValue()] =
      ir::LoadOp::create(b, load.getType(), array, load.getIndices());
}

void Forward::store(ir::StoreOp store) {
  Value array = tangentArrays.lookup(store.getArray());
  if (!array)
    return;
  Builder b(store.getLoc(), store->getContext());
  b.setInsertionPointAfter(store);
  Value tangent = tangentOf(b, store.getValue());
  ir::StoreOp::create(b, tangent, array, store.getIndices());
}

void Forward::update(ir::AtomicAddOp update) {
  Value array = tangentArrays.lookup(update.getArray());
  Value tangent = tangents.lookup(update.getValue());
  if (!array || !tangent)
    return;
  Builder b(update.getLoc(), update->getContext());
  b.setInsertionPointAfter(update);
  ir::AtomicAddOp::create(b, tangent, array, update.getIndices(),
                          update.getExclusive());
}

LogicalResult Forward::scalar(Operation *op) {
  bool active = llvm::any_of(op->getOperands(), [&](Value operand) {
    return tangents.contains(operand);
  });
  if (!active || op->getNumResults() != 1 || isDiscrete(op))
    return success();
  Rule rule = findRule(op);
  if (!rule)
    return op->emitError("the derivative of `" + op->getName().getStringRef() +
                         "` is not known");
  Builder b(op->getLoc(), op->getContext());
  b.setInsertionPointAfter(op);
  auto operand = [&](unsigned i) { return op->getOperand(i); };
  auto result = [&] { return op->getResult(0); };
  RuleArguments arguments{b, op, operand, result};
  Value sum;
  for (OpOperand &use : op->getOpOperands()) {
    Value tangent = tangents.lookup(use.get());
    if (!tangent)
      continue;
    Factor factor = rule(arguments, use.getOperandNumber());
    Value part = applyFactor(b, tangent, factor, op->getResult(0).getType());
    if (part)
      sum = sum ? arith::AddFOp::create(b, sum, part).getResult() : part;
  }
  if (sum)
    tangents[op->getResult(0)] = sum;
  return success();
}

//===-- Regions -----------------------------------------------------------===//

SmallVector<Value> Forward::withTangents(Builder &b, ValueRange values,
                                         ValueRange varying) {
  SmallVector<Value> all(values);
  for (auto [value, counterpart] : llvm::zip(values, varying))
    if (activity.isVaried(counterpart))
      all.push_back(tangentOf(b, value));
  return all;
}

/// Gives `block` an argument for the tangent of each varying one from `first`.
void Forward::addArguments(Block &block, unsigned first) {
  SmallVector<BlockArgument> arguments(block.getArguments().drop_front(first));
  for (BlockArgument argument : arguments)
    if (activity.isVaried(argument))
      tangents[argument] =
          block.addArgument(argument.getType(), argument.getLoc());
}

void Forward::extendTerminator(Block &block, ValueRange varying,
                               unsigned first) {
  Operation *terminator = block.getTerminator();
  Builder b(terminator->getLoc(), terminator);
  SmallVector<Value> operands(terminator->getOperands().take_front(first));
  llvm::append_range(
      operands,
      withTangents(b, terminator->getOperands().drop_front(first), varying));
  terminator->setOperands(operands);
}

LogicalResult Forward::region(Operation *op) {
  Builder b(op->getLoc(), op);
  SmallVector<Value> operands(op->getOperands());
  auto forLoop = dyn_cast<scf::ForOp>(op);
  auto whileLoop = dyn_cast<scf::WhileOp>(op);
  if (forLoop) {
    operands.resize(forLoop.getNumControlOperands());
    llvm::append_range(operands, withTangents(b, forLoop.getInitArgs(),
                                              forLoop.getRegionIterArgs()));
  } else if (whileLoop) {
    operands = withTangents(b, whileLoop.getInits(),
                            whileLoop.getBeforeArguments());
  }
  // The arguments come first: whether a result varies is known by the old ops.
  SmallVector<Value> before;
  if (whileLoop)
    llvm::append_range(before, whileLoop.getBeforeArguments());
  for (Region &nested : op->getRegions()) {
    if (nested.empty())
      continue;
    Block &body = nested.front();
    if (forLoop || whileLoop)
      addArguments(body, forLoop ? 1 : 0);
    if (failed(block(body)))
      return failure();
    bool isCondition = isa<scf::ConditionOp>(body.getTerminator());
    ValueRange varying = op->getResults();
    if (whileLoop && !isCondition)
      varying = before;
    extendTerminator(body, varying, isCondition ? 1 : 0);
  }
  SmallVector<Type> types(op->getResultTypes());
  for (Value result : op->getResults())
    if (activity.isVaried(result))
      types.push_back(result.getType());
  OperationState state(op->getLoc(), op->getName(), operands, types,
                       op->getAttrs());
  for (Region &nested : op->getRegions())
    state.addRegion()->takeBody(nested);
  Operation *widened = b.create(state);
  unsigned next = op->getNumResults();
  for (auto [old, result] : llvm::zip(op->getResults(), widened->getResults())) {
    // Uses move to the new result; the old one stays the key of `activity`.
    if (activity.isVaried(old))
      tangents[result] = widened->getResult(next++);
    old.replaceAllUsesWith(result);
  }
  op->erase();
  return success();
}

} // namespace costate::autodiff
