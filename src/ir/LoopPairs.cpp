#include "ir/LoopPairs.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::tape {

static std::optional<int64_t> pairOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(pairAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

Block *bodyOf(Operation *loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return counted.getBody();
  return cast<scf::WhileOp>(loop).getAfterBody();
}

std::optional<int64_t> constantCount(Operation *loop) {
  auto counted = dyn_cast<scf::ForOp>(loop);
  APInt count;
  if (!counted || !matchPattern(counted.getUpperBound(), m_ConstantInt(&count)))
    return std::nullopt;
  return count.getSExtValue();
}

LoopPairs::LoopPairs(Operation *root) {
  root->walk([&](Operation *op) {
    std::optional<int64_t> number = pairOf(op);
    if (!number)
      return;
    LoopPair &pair = pairs[*number];
    if (pair.forward)
      pair.reversed = dyn_cast<scf::ForOp>(op);
    else
      pair.forward = op;
  });
  pairs.remove_if([](auto &entry) { return !entry.second.isComplete(); });
}

Operation *LoopPairs::forwardOf(Operation *reversed) const {
  std::optional<int64_t> number = pairOf(reversed);
  auto pair = number ? pairs.find(*number) : pairs.end();
  bool undoes = pair != pairs.end() && pair->second.reversed == reversed;
  return undoes ? pair->second.forward : nullptr;
}

bool LoopPairs::contains(Operation *op) const {
  std::optional<int64_t> number = pairOf(op);
  return number && pairs.contains(*number);
}

SmallVector<int64_t> LoopPairs::around(Operation *op, Operation *other) const {
  SmallVector<int64_t> numbers;
  for (op = op->getParentOp(); op && !op->isAncestor(other);
       op = op->getParentOp())
    if (contains(op))
      numbers.push_back(*pairOf(op));
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

//===-- Verification ------------------------------------------------------===//

namespace {

/// What an iteration pushes or pops itself, and the loops of pairs in it, in
/// the order in which they stand.
class Items {
public:
  Items(const LoopPairs &pairs, bool reversed)
      : pairs(pairs), reversed(reversed) {}

  void add(Block::iterator first, Block::iterator last) {
    for (Operation &op : llvm::make_range(first, last))
      add(&op);
  }

  SmallVector<std::pair<Operation *, int64_t>> list;

private:
  void add(Operation *op) {
    if (pairs.contains(op)) {
      if (bool(pairs.forwardOf(op)) == reversed)
        list.push_back({op, -1 - *pairOf(op)});
    } else if (auto push = dyn_cast<PushOp>(op); push && push.getRecord()) {
      if (!reversed)
        list.push_back({op, *push.getRecord()});
    } else if (auto pop = dyn_cast<PopOp>(op); pop && pop.getRecord()) {
      if (reversed)
        list.push_back({op, *pop.getRecord()});
    } else if (isa<scf::IfOp>(op)) {
      for (Region &region : op->getRegions())
        if (!region.empty())
          add(region.front().begin(), region.front().end());
    }
  }

  const LoopPairs &pairs;
  bool reversed;
};

} // namespace

/// Whether they stand on different sides of a branch: then they have no order.
static bool areApart(Operation *a, Operation *b) {
  Region *side = a->getParentRegion();
  while (!side->getParentOp()->isAncestor(b))
    side = side->getParentRegion();
  return isa<scf::IfOp>(side->getParentOp()) &&
         !side->isAncestor(b->getParentRegion());
}

/// Whether what `forward` pushes comes back by `reversed` in the opposite
/// order; what only one of them has is left out.
static LogicalResult verifyOrder(const Items &forward, const Items &reversed) {
  auto tape = forward.list;
  for (auto [op, number] : reversed.list) {
    auto own = llvm::find_if(
        tape, [&](const auto &item) { return item.second == number; });
    if (own == tape.end())
      continue;
    for (auto above = std::next(own); above != tape.end(); ++above) {
      auto popped = llvm::find_if(reversed.list, [&](const auto &item) {
        return item.second == above->second;
      });
      bool isThere = popped != reversed.list.end();
      if (isThere && !areApart(own->first, above->first) &&
          !areApart(op, popped->first))
        return op->emitOpError("comes back before what is above it on the "
                               "tape");
    }
    tape.erase(own);
  }
  return success();
}

static LogicalResult verifyLoops(Operation *root) {
  llvm::DenseMap<int64_t, SmallVector<Operation *>> loops;
  root->walk([&](Operation *op) {
    if (std::optional<int64_t> number = pairOf(op))
      loops[*number].push_back(op);
  });
  for (auto &[number, both] : loops) {
    if (both.size() > 2)
      return both.back()->emitOpError("has the number of another pair");
    if (both.size() < 2)
      continue;
    if (both[0]->isAncestor(both[1]) || both[1]->isAncestor(both[0]))
      return both.back()->emitOpError("is the second one of a pair, and in or "
                                      "around the first one");
    if (!isa<scf::ForOp>(both[1]))
      return both.back()->emitOpError("is the second one of a pair, and no "
                                      "`scf.for`");
  }
  return success();
}

/// Both count from 0 by 1, and to the same number, as far as that can be seen.
static LogicalResult verifyTripCounts(const LoopPair &pair) {
  auto counts = [](scf::ForOp loop) {
    return matchPattern(loop.getLowerBound(), m_Zero()) &&
           matchPattern(loop.getStep(), m_One());
  };
  scf::ForOp reversed = pair.reversed;
  auto forward = dyn_cast<scf::ForOp>(pair.forward);
  if (!counts(reversed) || (forward && !counts(forward)))
    return reversed.emitOpError("is one of a pair that does not count from 0 "
                                "by 1");
  std::optional<int64_t> most = constantCount(pair.forward);
  if (most && constantCount(reversed).value_or(*most) != *most)
    return reversed.emitOpError("takes other iterations than the loop that it "
                                "undoes");
  return success();
}

static LogicalResult verifyNest(const LoopPairs &pairs, const Record &record) {
  Operation *push = record.push, *pop = record.pop;
  if (pairs.around(push, pop) == pairs.around(pop, push))
    return success();
  return pop->emitOpError("stands in loops that undo other ones than those "
                          "around its push");
}

/// Of one iteration, or of a work item around its pivot.
static LogicalResult verifySweeps(const LoopPairs &pairs,
                                  Block::iterator forward, Block::iterator end,
                                  Block::iterator reversed,
                                  Block::iterator last) {
  Items pushed(pairs, false), popped(pairs, true);
  pushed.add(forward, end);
  popped.add(reversed, last);
  return verifyOrder(pushed, popped);
}

LogicalResult verifyPairs(Operation *root) {
  if (failed(verifyLoops(root)))
    return failure();
  LoopPairs pairs(root);
  if (pairs.all().empty())
    return success();
  for (auto &[number, record] : recordsOf(root))
    if (failed(verifyNest(pairs, record)))
      return failure();
  for (auto &[number, pair] : pairs.all()) {
    Block *body = bodyOf(pair.forward), *undo = bodyOf(pair.reversed);
    if (failed(verifyTripCounts(pair)) ||
        failed(verifySweeps(pairs, body->begin(), body->end(), undo->begin(),
                            undo->end())))
      return failure();
  }
  WalkResult ordered = root->walk([&](PivotOp pivot) {
    Block *block = pivot->getBlock();
    return WalkResult(verifySweeps(pairs, block->begin(), pivot->getIterator(),
                                   std::next(pivot->getIterator()),
                                   block->end()));
  });
  return failure(ordered.wasInterrupted());
}

} // namespace costate::tape
