#include "conversion/PlaceTapes/Shape.h"

#include "sizing/Rows.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
namespace {

bool isConstant(Value value, int64_t wanted) {
  APInt found;
  return matchPattern(value, m_ConstantInt(&found)) && found == wanted;
}

/// Iterations are counted from 0 by 1.
bool isCounted(scf::ForOp loop) {
  return loop.getInductionVar().getType().isInteger(64) &&
         isConstant(loop.getLowerBound(), 0) && isConstant(loop.getStep(), 1);
}

std::optional<int64_t> recordOf(Operation *op) {
  if (auto push = dyn_cast<tape::PushOp>(op))
    return push.getRecord();
  if (auto pop = dyn_cast<tape::PopOp>(op))
    return pop.getRecord();
  return std::nullopt;
}

/// The loops around `op` in its range, the outermost one first.
SmallVector<Operation *> loopsAround(Operation *op) {
  SmallVector<Operation *> loops;
  for (op = op->getParentOp(); !isa<ir::RangeOp>(op); op = op->getParentOp())
    if (isa<scf::ForOp, scf::WhileOp>(op))
      loops.push_back(op);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

/// Pushes and pops without a partner are never reached.
void dropHalves(ir::RangeOp range,
                const llvm::DenseMap<int64_t, tape::Record> &records) {
  SmallVector<Operation *> halves;
  range.walk([&](Operation *op) {
    std::optional<int64_t> number = recordOf(op);
    if (number && !records.contains(*number))
      halves.push_back(op);
  });
  for (Operation *half : halves) {
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
  for (Operation *op = &body->front(); op != pivot; op = op->getNextNode()) {
    WalkResult result = op->walk([](Operation *nested) {
      if (isa<tape::PushOp>(nested) ||
          nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
          !ir::writesElement(nested))
        return WalkResult::advance();
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

/// A segment that runs again would need what private arrays held before it.
bool usesLocals(ir::RangeOp range) {
  return range
      .walk([](Operation *op) {
        return ir::isOfLocal(op) ? WalkResult::interrupt()
                                 : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The records and loops of straight code, of branches in it, and of loops.
struct Sequence {
  const TapeShape &shape;
  bool reversed;
  TapeLevel level{{RecordGroup()}, {}};

  void add(Block::iterator first, Block::iterator last) {
    for (Operation &op : llvm::make_range(first, last))
      add(&op);
  }

private:
  void add(Operation *op) {
    if (!shape.isOnTape(op))
      return;
    if (shape.isLoop(op)) {
      level.loops.push_back(op);
      level.groups.emplace_back();
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      addRegions(branch);
    } else if (std::optional<int64_t> record = recordOf(op)) {
      level.groups.back().records.push_back(*record);
    }
  }

  void addRegions(scf::IfOp branch) {
    Region *regions[] = {&branch.getThenRegion(), &branch.getElseRegion()};
    if (reversed)
      std::swap(regions[0], regions[1]);
    for (Region *region : regions)
      if (!region->empty())
        add(region->front().begin(), region->front().end());
  }
};

} // namespace

/// Whether loops have been cut already: what runs again saves as well.
static bool runsAgain(ir::RangeOp range) {
  return range
      .walk([](Operation *op) {
        return op->hasAttr(ir::rerunAttr) ? WalkResult::interrupt()
                                          : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<TapeShape> TapeShape::of(ir::RangeOp range) {
  TapeShape shape;
  auto pivots = range.getBody()->getOps<tape::PivotOp>();
  if (pivots.empty() || usesLocals(range) || runsAgain(range))
    return std::nullopt;
  shape.pivot = *pivots.begin();
  if (!shape.findRecords(range) || !shape.pairLoops() ||
      !isRepeatable(shape.body(), shape.pivot) ||
      !shape.fillLevel(nullptr, nullptr))
    return std::nullopt;
  for (auto [reversed, forward] : shape.partners)
    if (!shape.fillLevel(forward, reversed))
      return std::nullopt;
  return shape;
}

bool TapeShape::findRecords(ir::RangeOp range) {
  bool numbered = true;
  range.walk([&](Operation *op) {
    numbered &= !isa<tape::PushOp, tape::PopOp>(op) || recordOf(op).has_value();
  });
  if (!numbered)
    return false;
  records = tape::recordsOf(range);
  dropHalves(range, records);
  for (auto &[number, record] : records)
    if (!enter(record.push) || !enter(record.pop))
      return false;
  return !records.empty();
}

/// Notes what stands around a push or pop.
bool TapeShape::enter(Operation *op) {
  touching.insert(op);
  for (op = op->getParentOp(); !isa<ir::RangeOp>(op); op = op->getParentOp()) {
    touching.insert(op);
    if (isa<scf::IfOp>(op))
      continue;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!(loop && isCounted(loop)) && !isa<scf::WhileOp>(op))
      return false;
    loopOps.insert(op);
    for (Operation *up = op->getParentOp(); !isa<ir::RangeOp>(up);
         up = up->getParentOp())
      around.insert(up);
  }
  return true;
}

bool TapeShape::pairLoops() {
  llvm::DenseMap<Operation *, Operation *> undoneBy;
  for (auto &[number, record] : records) {
    SmallVector<Operation *> pushing = loopsAround(record.push);
    SmallVector<Operation *> popping = loopsAround(record.pop);
    if (pushing.size() != popping.size())
      return false;
    for (auto [forward, reversed] : llvm::zip(pushing, popping)) {
      if (!isa<scf::ForOp>(reversed) ||
          undoneBy.insert({forward, reversed}).first->second != reversed ||
          partners.insert({reversed, forward}).first->second != forward)
        return false;
      auto loop = dyn_cast<scf::WhileOp>(forward);
      if (loop && loop.getBefore().isAncestor(record.push->getParentRegion()))
        return false;
    }
  }
  return true;
}

static Block *bodyOf(Operation *loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return counted.getBody();
  return cast<scf::WhileOp>(loop).getAfterBody();
}

/// Gives the records of one level their rows, if the sweeps agree on them.
bool TapeShape::fillLevel(Operation *loop, Operation *reversed) {
  Sequence forward{*this, false}, backward{*this, true};
  if (loop) {
    forward.add(bodyOf(loop)->begin(), bodyOf(loop)->end());
    backward.add(bodyOf(reversed)->begin(), bodyOf(reversed)->end());
  } else {
    forward.add(body()->begin(), pivot->getIterator());
    backward.add(std::next(pivot->getIterator()), body()->end());
  }
  TapeLevel level = std::move(forward.level), &other = backward.level;
  if (level.loops.size() != other.loops.size())
    return false;
  std::reverse(other.loops.begin(), other.loops.end());
  std::reverse(other.groups.begin(), other.groups.end());
  for (auto [one, two] : llvm::zip(level.loops, other.loops))
    if (forwardOf(two) != one)
      return false;
  for (auto [group, popped] : llvm::zip(level.groups, other.groups)) {
    for (int64_t record : group.records) {
      if (!llvm::is_contained(popped.records, record))
        return false;
      rows[record] = group.rows;
      group.rows += sizing::RowLayout(typesOf(record)).rows;
    }
    if (group.records.size() != popped.records.size())
      return false;
  }
  levels[loop] = std::move(level);
  return true;
}

} // namespace costate::conversion
