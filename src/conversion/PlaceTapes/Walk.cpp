#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {

/// Branches around loops on the tape; and around records of the work item
/// itself, whose values come into scope thereby.
bool LevelWalk::isTakenApart(Operation *op) const {
  const TapeShape &shape = emitter.shape;
  return isa<scf::IfOp>(op) &&
         (shape.containsLoop(op) || (isWorkItem && shape.isOnTape(op)));
}

void LevelWalk::takeApart(scf::IfOp branch, Value pred) {
  Value condition = at.lookupOrDefault(branch.getCondition());
  Value taken = emitter.both(pred, condition);
  Value other = emitter.both(pred, emitter.negated(condition));
  auto walkRegion = [&](Region &region, Value where) {
    if (!region.empty())
      walk(region.front().begin(),
           region.front().getTerminator()->getIterator(), where);
  };
  if (elseFirst())
    walkRegion(branch.getElseRegion(), other);
  walkRegion(branch.getThenRegion(), taken);
  if (!elseFirst())
    walkRegion(branch.getElseRegion(), other);
  if (branch.getNumResults() == 0)
    return;
  Values yes = emitter.mapped(branch.thenYield().getOperands(), at);
  Values no = emitter.mapped(branch.elseYield().getOperands(), at);
  for (auto [result, a, c] : llvm::zip(branch.getResults(), yes, no))
    at.map(result, emitter.select(condition, a, c));
}

void LevelWalk::walk(Block::iterator first, Block::iterator last, Value pred) {
  SmallVector<Operation *> ops;
  auto flush = [&] {
    if (!ops.empty())
      emitter.straight(ops, pred, at, place());
    ops.clear();
  };
  for (Operation &op : llvm::make_range(first, last)) {
    if (emitter.shape.isLoop(&op)) {
      flush();
      visitLoop(&op, pred);
    } else if (isTakenApart(&op)) {
      flush();
      takeApart(cast<scf::IfOp>(op), pred);
    } else if (isWorkItem && isa<tape::PushOp, tape::PopOp>(op)) {
      flush();
      visitRecord(&op, pred);
    } else {
      ops.push_back(&op);
    }
  }
  flush();
}

//===-- Forward -----------------------------------------------------------===//

Value ForwardWalk::behindGroup() {
  int64_t rows = isWorkItem ? 0 : level.groups[group].rows;
  if (!current.counts() || rows == 0)
    return current.row;
  return current.measures() ? emitter.addUpTo(current.row, emitter.i32(rows))
                            : emitter.add(current.row, emitter.i32(rows));
}

void ForwardWalk::visitLoop(Operation *loop, Value pred) {
  if (isWorkItem) {
    emitter.outerLoop(loop, pred);
  } else {
    current.row = behindGroup();
    emitter.innerLoop(loop, pred, at, current);
  }
  ++group;
}

void ForwardWalk::visitRecord(Operation *op, Value) {
  auto push = cast<tape::PushOp>(op);
  emitter.records[*push.getRecord()] = emitter.mapped(push.getValues(), at);
}

//===-- Reverse -----------------------------------------------------------===//

ReverseWalk::ReverseWalk(Emitter &emitter, const TapeLevel &level,
                         IRMapping &at, Value end, bool isWorkItem)
    : LevelWalk(emitter, level, at, isWorkItem), row(end) {
  enterGroup(level.loops.size());
}

void ReverseWalk::enterGroup(unsigned number) {
  group = number;
  int64_t rows = level.groups[group].rows;
  if (!isWorkItem && rows)
    row = emitter.sub(row, emitter.i32(rows));
}

void ReverseWalk::visitLoop(Operation *loop, Value pred) {
  auto reversed = cast<scf::ForOp>(loop);
  if (isWorkItem)
    emitter.undoOuter(reversed, pred);
  else
    emitter.undoInner(reversed, pred, at, row);
  enterGroup(group - 1);
}

void ReverseWalk::visitRecord(Operation *op, Value) {
  auto pop = cast<tape::PopOp>(op);
  at.map(pop.getValues(), emitter.records.find(*pop.getRecord())->second);
}

} // namespace costate::conversion
