#include "autodiff/gather/Slice.h"

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

sizing::Costs gatherCosts() { return sizing::Costs(sizing::Target::Cpu); }

int64_t Slice::weight() const {
  sizing::Costs costs = gatherCosts();
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

namespace {

/// A side of a branch that stands nowhere yet.
struct Side {
  explicit Side(MLIRContext *context) : b(context) {
    b.setInsertionPointToEnd(&block);
  }

  void yield(Location loc, Term term) {
    values.push_back(term.value);
    values.push_back(term.condition ? term.condition : truth(b, loc, true));
  }
  void yieldNothing(Location loc, Type type) {
    values.push_back(nothing(b, loc, type));
    values.push_back(truth(b, loc, false));
  }

  Block block;
  OpBuilder b;
  SmallVector<Value> values; ///< what it yields
  Terms terms;
};

} // namespace

/// if `condition` { `yes` } else { `no` }, whose results are those values that
/// both have, and then the terms of both, which become these results. Null:
/// there are none.
static scf::IfOp join(OpBuilder &b, Location loc, Value condition, Side &yes,
                      Side &no, Terms &terms) {
  size_t next = yes.values.size();
  for (auto [side, other] : {std::pair(&yes, &no), std::pair(&no, &yes)})
    for (auto &[add, term] : side->terms) {
      side->yield(loc, term);
      other->yieldNothing(loc, term.value.getType());
    }
  if (yes.values.empty())
    return {};
  auto branch = scf::IfOp::create(b, loc, ValueRange(yes.values).getTypes(),
                                  condition, /*withElseRegion=*/true);
  for (auto [side, block] : {std::pair(&yes, branch.thenBlock()),
                             std::pair(&no, branch.elseBlock())}) {
    scf::YieldOp::create(side->b, loc, side->values);
    block->clear();
    block->getOperations().splice(block->end(), side->block.getOperations());
    for (auto &[add, term] : side->terms) {
      terms[add] = {branch.getResult(next), branch.getResult(next + 1)};
      next += 2;
    }
  }
  return branch;
}

Terms guarded(OpBuilder &b, Location loc, Value condition,
              llvm::function_ref<Terms(OpBuilder &)> fill) {
  if (!condition)
    return fill(b);
  Side then(b.getContext()), otherwise(b.getContext());
  then.terms = fill(then.b);
  Terms terms;
  join(b, loc, condition, then, otherwise, terms);
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
  SmallVector<Value> results = neededOf(branch);
  Side yes(b.getContext()), no(b.getContext());
  for (auto [side, block] : {std::pair(&yes, branch.thenBlock()),
                             std::pair(&no, branch.elseBlock())})
    if (block) {
      copy(side->b, *block, side->terms);
      side->values = yielded(results, *block);
    }
  if (auto copied = join(b, branch.getLoc(), condition, yes, no, terms))
    values.map(results, copied.getResults().take_front(results.size()));
}

} // namespace costate::autodiff
