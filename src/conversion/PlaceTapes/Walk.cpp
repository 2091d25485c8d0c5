#include "conversion/PlaceTapes/Walk.h"

#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Reverse.h"
#include "conversion/PlaceTapes/Segments.h"
#include "conversion/PlaceTapes/StraightCode.h"

using namespace mlir;

namespace costate::conversion {

/// Branches around loops on the tape; and around records of the work item
/// itself, whose values come into scope thereby.
bool LevelWalk::isTakenApart(Operation *op) const {
  return isa<scf::IfOp>(op) && (item.shape.containsLoop(op) ||
                                (isWorkItem && item.shape.isOnTape(op)));
}

void LevelWalk::takeApart(scf::IfOp branch, Value pred) {
  RowBuilder &b = item.b;
  Value condition = at.lookupOrDefault(branch.getCondition());
  Value taken = b.both(pred, condition);
  Value other = b.both(pred, b.negated(condition));
  auto walkRegion = [&](Region &region, Value where) {
    if (!region.empty())
      walk(region.front(), where);
  };
  bool startsWithElse = elseFirst(branch);
  if (startsWithElse)
    walkRegion(branch.getElseRegion(), other);
  walkRegion(branch.getThenRegion(), taken);
  if (!startsWithElse)
    walkRegion(branch.getElseRegion(), other);
  if (branch.getNumResults() == 0)
    return;
  Values yes = mapped(branch.thenYield().getOperands(), at);
  Values no = mapped(branch.elseYield().getOperands(), at);
  for (auto [result, a, c] : llvm::zip(branch.getResults(), yes, no))
    at.map(result, b.select(condition, a, c));
}

void LevelWalk::walk(Block::iterator first, Block::iterator last, Value pred) {
  SmallVector<Operation *> ops;
  auto flush = [&] {
    if (!ops.empty())
      cloneWhere(item, ops, pred, at, place());
    ops.clear();
  };
  for (Operation &op : llvm::make_range(first, last)) {
    if (item.shape.isLoop(&op)) {
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

void LevelWalk::walk(Block &body, Value pred) {
  walk(body.begin(), body.getTerminator()->getIterator(), pred);
}

//===-- Forward -----------------------------------------------------------===//

Value ForwardWalk::afterGroup() {
  return rowAfter(item.b, current, isWorkItem ? 0 : level.groups[group].rows);
}

void ForwardWalk::visitLoop(Operation *loop, Value pred) {
  if (isWorkItem) {
    runInSegments(item, loop, pred);
  } else {
    current.row = afterGroup();
    runInner(item, loop, pred, at, current);
  }
  ++group;
}

void ForwardWalk::visitRecord(Operation *op, Value) {
  auto push = cast<tape::PushOp>(op);
  item.records[*push.getRecord()] = mapped(push.getValues(), at);
}

//===-- Reverse -----------------------------------------------------------===//

ReverseWalk::ReverseWalk(WorkItem &item, const TapeLevel &level, IRMapping &at,
                         Value end, bool isWorkItem)
    : LevelWalk(item, level, at, isWorkItem), row(end) {
  enterGroup(level.loops.size());
}

void ReverseWalk::enterGroup(unsigned number) {
  group = number;
  int64_t rows = level.groups[group].rows;
  if (!isWorkItem && rows)
    row = item.b.sub(row, item.b.i32(rows));
}

/// The place of the last record that `side` takes; 0: it takes none.
unsigned ReverseWalk::lastPlaceIn(Region &side) const {
  unsigned last = 0;
  side.walk([&](tape::PopOp pop) {
    last = std::max(last, item.shape.placeOf(*pop.getRecord()));
  });
  return last;
}

/// Sides come back in the opposite order, whichever is which.
bool ReverseWalk::elseFirst(scf::IfOp branch) const {
  return lastPlaceIn(branch.getElseRegion()) >=
         lastPlaceIn(branch.getThenRegion());
}

void ReverseWalk::visitLoop(Operation *loop, Value pred) {
  auto reversed = cast<scf::ForOp>(loop);
  if (isWorkItem)
    undoSegments(item, reversed, pred);
  else
    undoInner(item, reversed, pred, at, row);
  enterGroup(group - 1);
}

void ReverseWalk::visitRecord(Operation *op, Value) {
  auto pop = cast<tape::PopOp>(op);
  at.map(pop.getValues(), item.records.find(*pop.getRecord())->second);
}

} // namespace costate::conversion
