#include "autodiff/reverse/Reverser.h"

#include "autodiff/FunctionGradient.h"
#include "autodiff/cut/Counting.h"
#include "autodiff/cut/Online.h"
#include "autodiff/replay/Owners.h"
#include "autodiff/replay/Replay.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"
#include "ir/Tape.h"

using namespace mlir;

namespace costate::autodiff {

//===-- Adjoints ----------------------------------------------------------===//

Value Adjoints::take(Value value) {
  auto place = map.find(value);
  if (place == map.end())
    return {};
  return std::exchange(place->second, {});
}

void Adjoints::add(Builder &b, Value value, Value g) {
  Value &sum = map[value];
  sum = sum ? arith::AddFOp::create(b, sum, g).getResult() : g;
}

SmallVector<Value> Adjoints::remaining() const {
  SmallVector<Value> values;
  for (auto &[value, g] : map)
    if (g)
      values.push_back(value);
  return values;
}

//===-- Whole kernel ------------------------------------------------------===//

SmallVector<Operation *> operationsOf(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  return ops;
}

Reverser::Reverser(ir::KernelOp kernel,
                   llvm::DenseMap<Value, Value> adjointArrays,
                   llvm::DenseMap<Operation *, Value> tripCounts,
                   Exclusive exclusiveOf, const sizing::Policy &policy)
    : kernel(kernel), adjointArrays(std::move(adjointArrays)),
      tripCounts(std::move(tripCounts)),
      activity(kernel, [this](Value array) { return hasAdjoint(array); }),
      influence(kernel, [this](Value array) { return hasAdjoint(array); }),
      exclusiveOf(std::move(exclusiveOf)), records{sizing::Planner(policy)} {}

bool isOfPrimal(Operation *op) {
  if (auto assertion = dyn_cast<ir::AssertOp>(op))
    return !assertion.getRefuses();
  return isa<ir::PrintOp>(op) ||
         (ir::writesElement(op) && !op->hasAttr(ir::replayedAttr));
}

LogicalResult Reverser::run() {
  if (failed(checkRules()))
    return failure();
  collectEffects();
  Block &block = kernel.getBodyRegion().front();
  llvm::append_range(effects, ir::all<Operation *>(kernel, isOfPrimal));
  Builder b(kernel.getLoc(), block.getTerminator());
  SmallVector<Operation *> ops = operationsOf(block);
  pivot = tape::PivotOp::create(b);
  declareAdjoints(block, b);
  Scopes scopes(records);
  Scope &scope = scopes.open(block);
  Adjoints adjoints;
  Sweep sweep{b, scope, adjoints};
  if (failed(reverseOps(ops, sweep)))
    return failure();
  scopes.finish();
  pairLoops();
  skipLastSegments();
  for (Operation *effect : effects)
    effect->erase();
  keepAhead(kernel);
  return success();
}

LogicalResult Reverser::checkRules() {
  return ir::forAll<Operation *>(kernel, [&](Operation *op) {
    bool plain = op->getNumRegions() == 0 && op->getNumResults() > 0 &&
                 !isa<ir::LoadOp, func::CallOp>(op) && !ir::isOfLocal(op);
    if (!plain || isDiscrete(op) || findRule(op) ||
        llvm::none_of(op->getOperands(),
                      [&](Value v) { return activity.isVaried(v); }))
      return success();
    return emitNoRule(op);
  });
}

void Reverser::collectEffects() {
  kernel.walk([&](Operation *op) {
    std::optional<ArrayAccess> access = accessOf(op);
    bool ofArray = access && access->isWrite() && hasAdjoint(access->array);
    bool ofLocal = ir::writesLocal(op) && isActive(ir::localOf(op));
    if (!ofArray && !ofLocal)
      return;
    while (op && effectful.insert(op).second)
      op = op->getParentOp();
  });
}

//===-- Straight code -----------------------------------------------------===//

LogicalResult Reverser::reverseOps(Ops ops, Sweep &sweep) {
  for (Operation *op : llvm::reverse(ops))
    if (failed(reverseOp(op, sweep)))
      return failure();
  return success();
}

LogicalResult Reverser::reverseOp(Operation *op, Sweep &sweep) {
  sweep.b.setLoc(op->getLoc());
  if (isOwnerCheck(op) || op->hasAttr(countsAttr))
    return success();
  if (auto load = dyn_cast<ir::LoadOp>(op)) {
    reverseLoad(load, sweep);
  } else if (auto store = dyn_cast<ir::StoreOp>(op)) {
    reverseStore(store, sweep);
  } else if (auto update = dyn_cast<ir::AtomicAddOp>(op)) {
    reverseUpdate(update, sweep);
  } else if (isExtremum(op)) {
    reverseExtremum(op, sweep);
  } else if (ir::isOfLocal(op)) {
    reverseLocal(op, sweep);
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    reverseCall(call, sweep);
  } else if (op->getNumRegions() == 0 || isa<ir::CustomOp>(op)) {
    reverseScalar(op, sweep);
  } else {
    SmallVector<Value> g;
    for (Value result : op->getResults())
      g.push_back(sweep.adjoints.take(result));
    if (llvm::none_of(g, [](Value v) { return bool(v); }) &&
        !effectful.contains(op))
      return success();
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return reverseIf(branch, g, sweep);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return reverseFor(loop, g, sweep);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return reverseWhile(loop, g, sweep);
    if (auto range = dyn_cast<ir::RangeOp>(op))
      return reverseRange(range, g, sweep);
    return emitNoRule(op);
  }
  return success();
}

void Reverser::add(Sweep &sweep, Value value, Value g) {
  if (g && isActive(value))
    sweep.adjoints.add(sweep.b, value, g);
}

SmallVector<Value> Reverser::use(Sweep &sweep, ValueRange values) {
  return llvm::map_to_vector(values,
                             [&](Value v) { return sweep.scope.use(v); });
}

void Reverser::reverseLoad(ir::LoadOp load, Sweep &sweep) {
  Value g = sweep.adjoints.take(load.getValue());
  Value adjoint = adjointArrays.lookup(load.getArray());
  if (!g || !adjoint)
    return;
  SmallVector<Value> indices = use(sweep, load.getIndices());
  ir::AtomicAddOp::create(sweep.b, g, adjoint, indices,
                          exclusive.contains(load.getArray()));
}

/// Earlier loads of the element add to its adjoint after the clear.
void Reverser::reverseStore(ir::StoreOp store, Sweep &sweep) {
  Value adjoint = adjointArrays.lookup(store.getArray());
  if (!adjoint)
    return;
  SmallVector<Value> indices = use(sweep, store.getIndices());
  Value value = store.getValue();
  if (isActive(value)) {
    add(sweep, value, take(store, adjoint, indices, sweep.b));
    return;
  }
  Value zero = floatConstant(sweep.b, value.getType(), 0);
  ir::StoreOp::create(sweep.b, zero, adjoint, indices);
}

void Reverser::reverseUpdate(ir::AtomicAddOp update, Sweep &sweep) {
  Value adjoint = adjointArrays.lookup(update.getArray());
  if (!adjoint || !isActive(update.getValue()))
    return;
  SmallVector<Value> indices = use(sweep, update.getIndices());
  Value g = ir::LoadOp::create(sweep.b, update.getValue().getType(), adjoint,
                               indices);
  add(sweep, update.getValue(), g);
}

/// Of the updates that have given the element its value, the first one to be
/// reversed takes the adjoint; if none has, it stays with the earlier value.
void Reverser::reverseExtremum(Operation *update, Sweep &sweep) {
  ArrayAccess access = *accessOf(update);
  Value adjoint = adjointArrays.lookup(access.array);
  if (!adjoint)
    return;
  Value value = update->getOperand(0);
  SmallVector<Value> indices = use(sweep, access.indices);
  Value final = loadFinal(update, indices, sweep.b);
  Value wins = arith::CmpFOp::create(sweep.b, arith::CmpFPredicate::OEQ,
                                     sweep.scope.use(value), final);
  auto branch = scf::IfOp::create(sweep.b, value.getType(), wins,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  Builder taking(update->getLoc(), update->getContext());
  taking.setInsertionPointToEnd(branch.thenBlock());
  Value g = take(update, adjoint, indices, taking);
  scf::YieldOp::create(taking, g);
  taking.setInsertionPointToEnd(branch.elseBlock());
  Value zero = floatConstant(taking, value.getType(), 0);
  scf::YieldOp::create(taking, zero);
  add(sweep, value, branch.getResult(0));
}

/// The value that the part leaves in the element of `update`.
Value Reverser::loadFinal(Operation *update, ValueRange indices, Builder &b) {
  auto probe = cast<ir::LoadOp>(update->getNextNode());
  assert(probe->hasAttr(afterPartAttr) && "extrema must have been probed");
  auto load = ir::LoadOp::create(b, probe.getType(), probe.getArray(), indices);
  load->setAttrs(probe->getAttrs());
  return load;
}

/// Whether several work items may write to one element through `write`: an
/// extremum, or a store of a value that they have in common.
bool Reverser::isShared(Operation *write) const {
  write = originalOf(write);
  auto range = write->getParentOfType<ir::RangeOp>();
  if (!range || exclusive.contains(accessOf(write)->array))
    return false;
  auto store = dyn_cast<ir::StoreOp>(write);
  return !store || isUniform(store.getValue(), range);
}

/// The adjoint of an element, which is 0 then. One work item gets all of it.
Value Reverser::take(Operation *write, Value adjoint, ValueRange indices,
                     Builder &b) {
  Type type = write->getOperand(0).getType();
  if (isShared(write))
    return ir::AtomicTakeOp::create(b, type, adjoint, indices,
                                    /*exclusive=*/false);
  Value g = ir::LoadOp::create(b, type, adjoint, indices);
  Value zero = floatConstant(b, type, 0);
  ir::StoreOp::create(b, zero, adjoint, indices);
  return g;
}

void Reverser::reverseScalar(Operation *op, Sweep &sweep) {
  if (op->getNumResults() != 1)
    return;
  Value g = sweep.adjoints.take(op->getResult(0));
  Rule rule = findRule(op);
  if (!g || !rule)
    return;
  auto operand = [&](unsigned i) { return sweep.scope.use(op->getOperand(i)); };
  auto result = [&] { return sweep.scope.use(op->getResult(0)); };
  RuleArguments arguments{sweep.b, op, operand, result};
  for (OpOperand &use : op->getOpOperands()) {
    if (!isActive(use.get()))
      continue;
    Factor factor = rule(arguments, use.getOperandNumber());
    add(sweep, use.get(), applyFactor(sweep.b, g, factor, use.get().getType()));
  }
}

void Reverser::reverseCall(func::CallOp call, Sweep &sweep) {
  SmallVector<Value> adjoints;
  bool any = false;
  for (Value result : call.getResults()) {
    if (!isa<FloatType>(result.getType()))
      continue;
    Value g = sweep.adjoints.take(result);
    any |= bool(g);
    adjoints.push_back(zeroIfNull(sweep.b, g, result.getType()));
  }
  if (!any)
    return;
  SmallVector<Value> operands = use(sweep, call.getOperands());
  llvm::append_range(operands, adjoints);
  // In the reverse of a loop a range stands in no module yet.
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      kernel, call.getCalleeAttr());
  auto reverse = func::CallOp::create(sweep.b, gradientOf(callee), operands);
  unsigned next = 0;
  for (Value operand : call.getOperands())
    if (isa<FloatType>(operand.getType()))
      add(sweep, operand, reverse.getResult(next++));
}

Value Reverser::zeroIfNull(Builder &b, Value g, Type type) {
  return g ? g : floatConstant(b, type, 0);
}

SmallVector<unsigned> Reverser::activeAmong(ValueRange values) const {
  SmallVector<unsigned> indices;
  for (auto [index, value] : llvm::enumerate(values))
    if (isActive(value))
      indices.push_back(index);
  return indices;
}

} // namespace costate::autodiff
