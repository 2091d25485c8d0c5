#include "autodiff/gather/Slice.h"

#include "sizing/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::autodiff {

//===-- Slices ------------------------------------------------------------===//

void Slice::add(ir::AtomicAddOp addition, ir::RangeOp range) {
  need(addition.getValue(), range);
  for (Operation *around = addition->getParentOp(); around != range;
       around = around->getParentOp()) {
    if (auto branch = dyn_cast<scf::IfOp>(around)) {
      operations.insert(branch);
      need(branch.getCondition(), range);
    } else {
      isPure = false;
    }
  }
}

void Slice::need(Value value, ir::RangeOp range) {
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!range.getRegion().isAncestor(next.getParentRegion()) ||
        !values.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (!op) {
      isPure &= cast<BlockArgument>(next).getOwner() == range.getBody();
      continue;
    }
    operations.insert(op);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      unsigned number = cast<OpResult>(next).getResultNumber();
      pending.append({branch.getCondition(),
                      branch.thenYield().getOperand(number),
                      branch.elseYield().getOperand(number)});
      continue;
    }
    isPure &= isa<ir::LoadOp, ir::CustomOp>(op) ||
              (op->getNumRegions() == 0 && isMemoryEffectFree(op));
    llvm::append_range(pending, op->getOperands());
  }
}

SmallVector<ir::LoadOp> Slice::loads() const {
  SmallVector<ir::LoadOp> found;
  for (Operation *op : operations)
    if (auto load = dyn_cast<ir::LoadOp>(op))
      found.push_back(load);
  return found;
}

/// The same for all devices: it decides the order of additions.
int64_t Slice::weight() const {
  sizing::Costs costs(sizing::Target::Cpu);
  int64_t sum = 0;
  for (Operation *op : operations)
    sum += costs.of(op);
  return sum;
}

//===-- Copies ------------------------------------------------------------===//

static Value constant(OpBuilder &b, Location loc, TypedAttr value) {
  return arith::ConstantOp::create(b, loc, value);
}

Value nothing(OpBuilder &b, Location loc, Type type) {
  return constant(b, loc, b.getFloatAttr(type, -0.0));
}

static Value truth(OpBuilder &b, Location loc, bool value) {
  return constant(b, loc, b.getBoolAttr(value));
}

/// What an `scf.if` yields, in the order of its results.
static void yield(OpBuilder &b, Location loc, ArrayRef<Value> values) {
  scf::YieldOp::create(b, loc, values);
}

/// At the end of a block that stands nowhere yet.
static OpBuilder atEnd(Block &block, MLIRContext *context) {
  OpBuilder b(context);
  b.setInsertionPointToEnd(&block);
  return b;
}

/// Puts what has been made of a side into a branch without terminators.
static void fillSide(Block *side, Block &made) {
  side->clear();
  side->getOperations().splice(side->end(), made.getOperations());
}

Terms guarded(OpBuilder &b, Location loc, Value condition,
              llvm::function_ref<Terms(OpBuilder &)> fill) {
  if (!condition)
    return fill(b);
  Block then, otherwise;
  OpBuilder inner = atEnd(then, b.getContext());
  Terms terms = fill(inner);
  SmallVector<Value> yes, no;
  OpBuilder other = atEnd(otherwise, b.getContext());
  for (auto &[add, term] : terms) {
    yes.push_back(term.value);
    yes.push_back(term.condition ? term.condition : truth(inner, loc, true));
    no.push_back(nothing(other, loc, term.value.getType()));
    no.push_back(truth(other, loc, false));
  }
  yield(inner, loc, yes);
  yield(other, loc, no);
  auto branch = scf::IfOp::create(b, loc, ValueRange(yes).getTypes(), condition,
                                  /*withElseRegion=*/true);
  fillSide(branch.thenBlock(), then);
  fillSide(branch.elseBlock(), otherwise);
  unsigned next = 0;
  for (auto &[add, term] : terms) {
    term = {branch.getResult(next), branch.getResult(next + 1)};
    next += 2;
  }
  return terms;
}

Terms SliceCopy::copy(OpBuilder &b, Block &body,
                      ArrayRef<ir::AtomicAddOp> additions) {
  wanted = additions;
  Terms terms;
  copy(b, body, terms);
  return terms;
}

bool SliceCopy::isKnown(OpBuilder &b, Operation *op) {
  bool all = op->getNumResults() > 0;
  for (Value result : op->getResults()) {
    if (!slice.values.contains(result) || values.contains(result))
      continue;
    if (Value value = known(b, result))
      values.map(result, value);
    else
      all = false;
  }
  return all;
}

/// Conditions fold, so that branches go.
static void cloneFolded(OpBuilder &b, Operation &op, IRMapping &values) {
  Operation *copy = b.clone(op, values);
  SmallVector<Value> results;
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isInteger(1) ||
      failed(b.tryFold(copy, results)) || results.empty()) // in place
    return;
  values.map(op.getResult(0), results.front());
  copy->erase();
}

void SliceCopy::copy(OpBuilder &b, Block &body, Terms &terms) {
  for (Operation &op : body.without_terminator()) {
    if (auto add = dyn_cast<ir::AtomicAddOp>(op)) {
      if (llvm::is_contained(wanted, add))
        terms[add] = {values.lookupOrDefault(add.getValue()), Value()};
      continue;
    }
    if (!slice.operations.contains(&op))
      continue;
    bool found = isKnown(b, &op);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      copyBranch(b, branch, terms);
    else if (!found)
      cloneFolded(b, op, values);
  }
}

/// The results of `branch` that somebody needs.
SmallVector<Value> SliceCopy::neededOf(scf::IfOp branch) {
  SmallVector<Value> results;
  for (Value result : branch.getResults())
    if (slice.values.contains(result) && !values.contains(result))
      results.push_back(result);
  return results;
}

/// What the copy of a side yields for `results`.
SmallVector<Value> SliceCopy::yielded(ArrayRef<Value> results, Block &side) {
  SmallVector<Value> found;
  for (Value result : results)
    found.push_back(values.lookupOrDefault(side.getTerminator()->getOperand(
        cast<OpResult>(result).getResultNumber())));
  return found;
}

void SliceCopy::copyBranch(OpBuilder &b, scf::IfOp branch, Terms &terms) {
  Value condition = values.lookupOrDefault(branch.getCondition());
  APInt taken;
  if (!matchPattern(condition, m_ConstantInt(&taken)))
    return copySides(b, branch, condition, terms);
  Block *side = taken.isZero() ? branch.elseBlock() : branch.thenBlock();
  if (!side)
    return;
  SmallVector<Value> results = neededOf(branch);
  copy(b, *side, terms);
  values.map(results, yielded(results, *side));
}

void SliceCopy::copySides(OpBuilder &b, scf::IfOp branch, Value condition,
                          Terms &terms) {
  Location loc = branch.getLoc();
  SmallVector<Value> results = neededOf(branch);
  Block made[2];
  OpBuilder at[] = {atEnd(made[0], b.getContext()),
                    atEnd(made[1], b.getContext())};
  Terms own[2];
  SmallVector<Value> all[2]; // what sides yield: results, then terms
  for (int k : {0, 1})
    if (Block *side = k ? branch.elseBlock() : branch.thenBlock()) {
      copy(at[k], *side, own[k]);
      all[k] = yielded(results, *side);
    }
  for (int k : {0, 1})
    for (auto &[add, term] : own[k]) {
      all[k].push_back(term.value);
      all[k].push_back(term.condition ? term.condition
                                      : truth(at[k], loc, true));
      all[1 - k].push_back(nothing(at[1 - k], loc, term.value.getType()));
      all[1 - k].push_back(truth(at[1 - k], loc, false));
    }
  if (all[0].empty())
    return;
  auto copied =
      scf::IfOp::create(b, loc, ValueRange(all[0]).getTypes(), condition,
                        /*withElseRegion=*/true);
  for (int k : {0, 1}) {
    yield(at[k], loc, all[k]);
    fillSide(k ? copied.elseBlock() : copied.thenBlock(), made[k]);
  }
  values.map(results, copied.getResults().take_front(results.size()));
  size_t next = results.size();
  for (int k : {0, 1})
    for (auto &[add, term] : own[k]) {
      terms[add] = {copied.getResult(next), copied.getResult(next + 1)};
      next += 2;
    }
}

} // namespace costate::autodiff
