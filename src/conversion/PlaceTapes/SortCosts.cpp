#include "conversion/PlaceTapes/SortCosts.h"

using namespace mlir;

namespace costate::conversion {

namespace {

bool isNextTo(Value index, Value last) {
  if (index == last)
    return true;
  Operation *op = index.getDefiningOp();
  return op && isa<arith::AddIOp, arith::SubIOp>(op) &&
         llvm::is_contained(op->getOperands(), last);
}

/// Whether lanes with neighbouring work items access neighbouring elements.
bool isShared(ir::RangeOp range, Operation *op) {
  auto access = dyn_cast<ir::ElementAccess>(op);
  Value index = access ? ir::innermostIndex(access) : nullptr;
  return index && isNextTo(index, range.getIndices().back());
}

/// How often `op` runs for each time that `root` does, if one is around it.
int64_t timesOf(Operation *op, Operation *root) {
  int64_t times = 1;
  for (op = op->getParentOp(); op != root; op = op->getParentOp())
    if (isa<LoopLikeOpInterface>(op))
      times *= sizing::guessedTripCount;
  return times;
}

} // namespace

SortCosts sortCostsOf(ir::RangeOp range, const TapeShape &shape,
                      const sizing::Costs &table) {
  SortCosts costs;
  auto uncoalescedSlots = [&](Operation *op) {
    return isShared(range, op) ? table.tiles().uncoalesced : 0;
  };
  range.walk<WalkOrder::PreOrder>([&](Operation *loop) {
    if (!shape.isLoop(loop)) {
      costs.uncoalescedWorkItem += uncoalescedSlots(loop);
      return WalkResult::advance();
    }
    int64_t runs = shape.forwardOf(loop) ? 1 : 2; // one more from a checkpoint
    loop->walk([&](Operation *op) {
      if (op == loop)
        return;
      int64_t times = runs * timesOf(op, loop);
      costs.iteration += times * table.of(op);
      costs.uncoalescedIteration += times * uncoalescedSlots(op);
    });
    return WalkResult::skip();
  });
  auto loops = static_cast<int64_t>(shape.level(nullptr).loops.size());
  costs.iteration /= loops;
  costs.uncoalescedIteration /= loops;
  return costs;
}

} // namespace costate::conversion
