#include "autodiff/forward/Forward.h"

#include "autodiff/replay/Accesses.h"
#include "autodiff/replay/Fetches.h"
#include "autodiff/rules/Rules.h"
#include "ir/Operations.h"

using namespace mlir;

namespace costate::autodiff {

/// Emits the tangents of one operation after it, and notes what it emits as
/// the next tasks: a derivative of higher order is one of these operations.
class Forward::Emission : public OpBuilder::Listener {
public:
  Emission(const Task &first)
      : b(first.op->getLoc(), first.op->getContext()), tasks{first} {
    b.setInsertionPointAfter(first.op);
    b.setListener(this);
  }

  /// From now on, belongs to the derivatives of `task`.
  void begin(const Task &task) {
    next = task;
    --next.order;
  }
  void along(unsigned first, unsigned last) {
    next.first = first;
    next.last = last;
  }
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    next.op = op;
    if (next.order > 0)
      tasks.push_back(next);
  }

  Builder b;
  SmallVector<Task> tasks;

private:
  Task next;
};

Forward::Forward(ir::KernelOp kernel,
                 llvm::DenseMap<Value, Value> tangentArrays, Curves curves)
    : kernel(kernel), tangentArrays(std::move(tangentArrays)), curves(curves),
      companion(), activity(kernel,
                            [this](Value array) {
                              return this->tangentArrays.contains(array);
                            }),
      tangents(curves.count()) {
  for (auto [number, record] : tape::recordsOf(kernel))
    for (Value value : record.pop.getValues())
      variedFields[number].push_back(activity.isVaried(value));
}

Forward::Forward(ir::KernelOp kernel, llvm::DenseMap<Value, Value> arrays,
                 Companion companion)
    : kernel(kernel), tangentArrays(std::move(arrays)), curves(),
      companion(std::move(companion)),
      activity(kernel, [](Value) { return true; }), tangents(curves.count()) {}

LogicalResult Forward::run() {
  Block &body = kernel.getBodyRegion().front();
  auto b = Builder::atBlockBegin(kernel.getLoc(), &body);
  for (unsigned curve = 0; curve < curves.directions; ++curve)
    curveNumbers.push_back(indexConstant(b, curve));
  return block(body);
}

LogicalResult Forward::block(Block &block) {
  for (Operation &nested :
       llvm::make_early_inc_range(block.without_terminator()))
    if (failed(op(&nested)))
      return failure();
  return success();
}

LogicalResult Forward::op(Operation *op) {
  if (op->getNumRegions() && !isa<ir::CustomOp>(op))
    return region(op);
  if (auto record = dyn_cast<tape::PushOp>(op))
    return push(record);
  if (auto record = dyn_cast<tape::PopOp>(op))
    return pop(record), success();
  if (auto arrays = dyn_cast<ir::CopyOp>(op))
    return copy(arrays);
  Emission out({op, curves.order, 0, curves.count()});
  for (size_t i = 0; i < out.tasks.size(); ++i) {
    Task task = out.tasks[i];
    out.begin(task);
    if (failed(straight(task, out)))
      return failure();
  }
  return success();
}

//===-- Straight code -----------------------------------------------------===//

LogicalResult Forward::straight(const Task &task, Emission &out) {
  if (auto array = dyn_cast<ir::LocalOp>(task.op))
    return local(array, task, out), success();
  if (isExtremum(task.op))
    return extremum(task.op, task, out);
  if (ir::fetchesElement(task.op))
    return success();
  if (isa<ir::ElementAccess>(task.op) || ir::isOfLocal(task.op))
    return access(task, out), success();
  return scalar(task, out);
}

bool Forward::hasTangent(Value value, const Task &task) const {
  return llvm::any_of(llvm::seq(task.first, task.last), [&](unsigned curve) {
    return tangents[curve].contains(value);
  });
}

Value Forward::tangentOf(Builder &b, Value value, unsigned curve) {
  if (Value tangent = tangents[curve].lookup(value))
    return tangent;
  return floatConstant(b, value.getType(), 0);
}

/// Only the first tangents of an array add the dimension of the curves.
SmallVector<Value> Forward::indicesIn(Value tangentArray, ValueRange indices,
                                      unsigned curve) const {
  SmallVector<Value> all(indices);
  auto type = dyn_cast<ir::ArrayType>(tangentArray.getType());
  if (type && type.getRank() > indices.size())
    all.insert(all.begin(), curveNumbers[curve]);
  return all;
}

/// The derivative of an access to a scratch array is one, too.
static void markLike(Operation *access, Operation *derivative) {
  if (Attribute part = access->getAttr(ir::replayedAttr))
    derivative->setAttr(ir::replayedAttr, part);
}

Operation *Forward::accessTo(Value array, Operation *access, Value value,
                             unsigned curve, OpBuilder &b) {
  SmallVector<Value> operands;
  if (value)
    operands.push_back(value);
  operands.push_back(array);
  llvm::append_range(
      operands,
      indicesIn(array, access->getOperands().drop_front(operands.size()),
                curve));
  Operation *derivative = b.clone(*access);
  derivative->setOperands(operands);
  derivative->setDiscardableAttrs(DictionaryAttr::get(b.getContext()));
  markLike(access, derivative);
  return derivative;
}

void Forward::access(const Task &task, Emission &out) {
  Operation *op = task.op;
  bool isAddition = isa<ir::AtomicAddOp>(op);
  for (unsigned curve = task.first; curve < task.last; ++curve) {
    out.along(curve, curve + 1);
    Value array = ir::isOfLocal(op) ? tangents[curve].lookup(ir::localOf(op))
                                    : tangentArrays.lookup(accessOf(op)->array);
    if (!array)
      continue;
    Value value;
    if (isAddition)
      value = companion ? companionFor(op, out)
                        : tangents[curve].lookup(op->getOperand(0));
    else if (isa<ir::StoreOp, ir::LocalStoreOp>(op))
      value = tangentOf(out.b, op->getOperand(0), curve);
    if (isAddition && !value)
      continue;
    Operation *derivative = accessTo(array, op, value, curve, out.b);
    if (op->getNumResults())
      tangents[curve][op->getResult(0)] = derivative->getResult(0);
  }
}

//===-- Private arrays ----------------------------------------------------===//

/// The tangents of a private array are private arrays beside it; those that are
/// emitted here vary as well.
void Forward::local(ir::LocalOp local, const Task &task, Emission &out) {
  if (task.order == curves.order && !activity.isVaried(local))
    return;
  for (unsigned curve = task.first; curve < task.last; ++curve) {
    out.along(curve, curve + 1);
    tangents[curve][local] =
        ir::LocalOp::create(out.b, local.getType().getDerivative());
  }
}

static LogicalResult refuseShared(Operation *update) {
  InFlightDiagnostic error = update->emitError(
      "several work items may give this minimum or maximum, and which of them "
      "does is known after the range only; so it has no forward derivative");
  error.attachNote() << "take it in serial code, or let each work item have an "
                        "element of its own; it has a reverse derivative";
  return failure();
}

/// Where no other work item interferes, the tangent is that of the value if the
/// element has become that value.
LogicalResult Forward::extremum(Operation *update, const Task &task,
                                Emission &out) {
  ArrayAccess access = *accessOf(update);
  Value array = tangentArrays.lookup(access.array);
  if (!array)
    return success();
  if (update->getParentOfType<ir::RangeOp>() && !isExclusive(update))
    return refuseShared(update);
  Value value = update->getOperand(0);
  out.along(task.first, task.last);
  auto now =
      ir::LoadOp::create(out.b, value.getType(), access.array, access.indices);
  markLike(update, now);
  now->setAttr(becomesAttr, out.b.getUnitAttr());
  Value wins =
      arith::CmpFOp::create(out.b, arith::CmpFPredicate::OEQ, value, now);
  for (unsigned curve = task.first; curve < task.last; ++curve) {
    out.along(curve, curve + 1);
    SmallVector<Value> indices = indicesIn(array, access.indices, curve);
    Value tangent = tangentOf(out.b, value, curve);
    auto old = ir::LoadOp::create(out.b, value.getType(), array, indices);
    Value next = arith::SelectOp::create(out.b, wins, tangent, old);
    markLike(update, old);
    markLike(update, ir::StoreOp::create(out.b, next, array, indices));
  }
  return success();
}

Value Forward::companionFor(Operation *op, Emission &out) {
  SmallVector<Value> beside;
  for (Value operand : op->getOperands())
    beside.push_back(companionOf(operand));
  return companion(out.b, op, beside);
}

/// Factors serve all curves; the products belong to one.
LogicalResult Forward::scalar(const Task &task, Emission &out) {
  Operation *op = task.op;
  if (companion) {
    if (op->getNumResults() == 1 && isa<FloatType>(op->getResult(0).getType()))
      if (Value beside = companionFor(op, out))
        tangents.front()[op->getResult(0)] = beside;
    return success();
  }
  bool varies = llvm::any_of(op->getOperands(), [&](Value operand) {
    return hasTangent(operand, task);
  });
  if (!varies || op->getNumResults() == 0 || isDiscrete(op))
    return success();
  Rule rule = op->getNumResults() == 1 ? findRule(op) : nullptr;
  if (!rule)
    return emitNoRule(op);
  auto operand = [&](unsigned i) { return op->getOperand(i); };
  auto result = [&] { return op->getResult(0); };
  RuleArguments arguments{out.b, op, operand, result};
  SmallVector<Value> sums(curves.count());
  for (OpOperand &use : op->getOpOperands()) {
    if (!hasTangent(use.get(), task))
      continue;
    out.along(task.first, task.last);
    Factor factor = rule(arguments, use.getOperandNumber());
    for (unsigned curve = task.first; curve < task.last; ++curve) {
      Value tangent = tangents[curve].lookup(use.get());
      if (!tangent)
        continue;
      out.along(curve, curve + 1);
      Value part =
          applyFactor(out.b, tangent, factor, op->getResult(0).getType());
      Value &sum = sums[curve];
      if (part)
        sum = sum ? arith::AddFOp::create(out.b, sum, part).getResult() : part;
    }
  }
  for (auto [curve, sum] : llvm::enumerate(sums))
    if (sum)
      tangents[curve][op->getResult(0)] = sum;
  return success();
}

//===-- Lists of values with tangents -------------------------------------===//

void Forward::appendTangents(Builder &b, Value value,
                             SmallVectorImpl<Value> &list) {
  for (unsigned curve = 0; curve < curves.count(); ++curve) {
    Value derivative = value;
    for (unsigned order = 0; order < curves.order; ++order) {
      derivative = tangentOf(b, derivative, curve);
      list.push_back(derivative);
    }
  }
}

void Forward::receiveTangents(Value value, llvm::function_ref<Value()> next) {
  for (unsigned curve = 0; curve < curves.count(); ++curve) {
    Value derivative = value;
    for (unsigned order = 0; order < curves.order; ++order)
      derivative = tangents[curve][derivative] = next();
  }
}

SmallVector<Value> Forward::withTangents(Builder &b, ValueRange values,
                                         ValueRange varying) {
  SmallVector<Value> all(values);
  for (auto [value, counterpart] : llvm::zip(values, varying))
    if (activity.isVaried(counterpart))
      appendTangents(b, value, all);
  return all;
}

void Forward::widen(Operation *op, ValueRange operands) {
  unsigned perValue = curves.order * curves.count();
  SmallVector<Type> types(op->getResultTypes());
  for (Value result : op->getResults())
    if (activity.isVaried(result))
      types.append(perValue, result.getType());
  Operation *widened = ir::remade(op, operands, types);
  unsigned next = op->getNumResults();
  for (auto [old, result] :
       llvm::zip(op->getResults(), widened->getResults())) {
    // Uses move to the new result; the old one stays the key of `activity`.
    if (activity.isVaried(old))
      receiveTangents(result, [&] { return widened->getResult(next++); });
    old.replaceAllUsesWith(result);
  }
  op->erase();
}

//===-- Records -----------------------------------------------------------===//

LogicalResult Forward::push(tape::PushOp push) {
  Builder b(push.getLoc(), push);
  SmallVector<Value> values(push.getValues());
  ArrayRef<bool> varied;
  if (std::optional<uint64_t> number = push.getRecord()) {
    varied = variedFields[*number];
    if (varied.empty())
      return success();
  }
  for (auto [index, value] : llvm::enumerate(push.getValues())) {
    if (!varied.empty() && varied[index])
      appendTangents(b, value, values);
    else if (varied.empty() && activity.isVaried(value))
      return push.emitError("the derivative of a record without a number is "
                            "not known")
                 .attachNote()
             << "give its push and its pop the same `record(N)`";
  }
  push->setOperands(values);
  return success();
}

void Forward::pop(tape::PopOp pop) { widen(pop, {}); }

//===-- Whole arrays ------------------------------------------------------===//

LogicalResult Forward::copy(ir::CopyOp copy) {
  Value from = copy.getFrom(), to = copy.getTo();
  Builder b(copy.getLoc(), copy->getContext());
  b.setInsertionPointAfter(copy);
  for (unsigned order = 0; order < curves.order; ++order) {
    from = tangentArrays.lookup(from);
    to = tangentArrays.lookup(to);
    if (!to)
      return success();
    if (!from)
      return copy.emitError("an array without tangents is copied into one that "
                            "has them");
    ir::CopyOp::create(b, from, to);
  }
  return success();
}

//===-- Regions -----------------------------------------------------------===//

/// Gives `block` arguments for the tangents of each varying one from `first`.
void Forward::addArguments(Block &block, unsigned first) {
  SmallVector<BlockArgument> arguments(block.getArguments().drop_front(first));
  for (BlockArgument argument : arguments)
    if (activity.isVaried(argument))
      receiveTangents(argument, [&] {
        return block.addArgument(argument.getType(), argument.getLoc());
      });
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
    operands =
        withTangents(b, whileLoop.getInits(), whileLoop.getBeforeArguments());
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
  widen(op, operands);
  return success();
}

} // namespace costate::autodiff
