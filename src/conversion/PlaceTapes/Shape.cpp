#include "conversion/PlaceTapes/Shape.h"

#include "conversion/KernelToLLVM/Outline.h"
#include "ir/Operations.h"
#include "sizing/Rows.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

std::optional<int64_t> recordOf(Operation *op) {
  if (auto push = dyn_cast<tape::PushOp>(op))
    return push.getRecord();
  if (auto pop = dyn_cast<tape::PopOp>(op))
    return pop.getRecord();
  return std::nullopt;
}

bool isUnnamed(Operation *op) {
  return isa<tape::PushOp, tape::PopOp>(op) && !recordOf(op);
}

/// Pushes and pops without a partner are never reached.
void dropHalves(ir::RangeOp range,
                const llvm::DenseMap<int64_t, tape::Record> &records) {
  auto isHalf = [&](Operation *op) {
    std::optional<int64_t> number = recordOf(op);
    return number && !records.contains(*number);
  };
  for (Operation *half : ir::all<Operation *>(range, isHalf)) {
    OpBuilder b(half);
    for (Value value : half->getResults()) {
      TypedAttr zero = b.getZeroAttr(value.getType());
      value.replaceAllUsesWith(
          arith::ConstantOp::create(b, half->getLoc(), zero));
    }
    half->erase();
  }
}

/// Whether running the forward sweep again changes nothing.
bool isRepeatable(Block *body, tape::PivotOp pivot) {
  for (Operation *op = &body->front(); op != pivot; op = op->getNextNode())
    if (ir::contains(op, ir::writesElement))
      return false;
  return true;
}

} // namespace

/// What runs again in the reverse sweep may save as well.
bool TapeShape::isForward(Operation *op) {
  return body()->findAncestorOpInBlock(*op)->isBeforeInBlock(pivot);
}

std::optional<TapeShape> TapeShape::of(ir::RangeOp range, StringRef &obstacle) {
  TapeShape shape;
  auto pivots = range.getBody()->getOps<tape::PivotOp>();
  if (pivots.empty())
    return std::nullopt;
  shape.pivot = *pivots.begin();
  obstacle = shape.obstacleIn(range);
  if (!obstacle.empty() || shape.records.empty())
    return std::nullopt;
  return shape;
}

/// Empty: none.
StringRef TapeShape::obstacleIn(ir::RangeOp range) {
  if (contains(range.getBodyRegion(), isUnnamed))
    return "the records that it saves have no names";
  records = tape::recordsOf(range);
  dropHalves(range, records);
  if (records.empty())
    return {};
  if (llvm::any_of(records,
                   [&](auto &entry) { return !isForward(entry.second.push); }))
    return "a loop in it runs again from checkpoints";
  range.walk([&](tape::PushOp push) {
    places.insert({*push.getRecord(), places.size() + 1});
  });
  tape::LoopPairs pairs(range);
  for (auto &[number, record] : records)
    if (!enter(record.push, pairs) || !enter(record.pop, pairs))
      return "a loop that saves values in it is not undone by one loop";
  if (!isRepeatable(body(), pivot))
    return "it overwrites elements that it has read";
  levels[nullptr] = levelOf(body()->begin(), pivot->getIterator());
  for (auto &[number, pair] : pairs.all()) {
    if (!isLoop(pair.forward))
      continue;
    partners[pair.reversed] = pair.forward;
    Block *iteration = tape::bodyOf(pair.forward);
    levels[pair.forward] = levelOf(iteration->begin(), iteration->end());
  }
  return {};
}

/// Notes what stands around a push or pop; whether all loops are pairs.
bool TapeShape::enter(Operation *op, const tape::LoopPairs &pairs) {
  touching.insert(op);
  bool isInPairs = true;
  for (op = op->getParentOp(); !isa<ir::RangeOp>(op); op = op->getParentOp()) {
    touching.insert(op);
    if (isa<scf::IfOp>(op))
      continue;
    isInPairs &= pairs.contains(op);
    loopOps.insert(op);
    for (Operation *up = op->getParentOp(); !isa<ir::RangeOp>(up);
         up = up->getParentOp())
      around.insert(up);
  }
  return isInPairs;
}

TapeLevel TapeShape::levelOf(Block::iterator first, Block::iterator last) {
  TapeLevel level{{RecordGroup()}, {}};
  add(first, last, level);
  return level;
}

/// Loops end a group of records; branches are no levels of their own.
void TapeShape::add(Block::iterator first, Block::iterator last,
                    TapeLevel &level) {
  for (Operation &op : llvm::make_range(first, last)) {
    if (!isOnTape(&op))
      continue;
    if (isLoop(&op)) {
      level.loops.push_back(&op);
      level.groups.emplace_back();
    } else if (auto push = dyn_cast<tape::PushOp>(op)) {
      RecordGroup &group = level.groups.back();
      int64_t record = *push.getRecord();
      group.records.push_back(record);
      rows[record] = group.rows;
      group.rows += sizing::RowLayout(typesOf(record)).rows;
    } else {
      for (Region &region : op.getRegions())
        if (!region.empty())
          add(region.front().begin(), region.front().end(), level);
    }
  }
}

} // namespace costate::conversion
