#include "conversion/Ahead.h"
#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/PlaceTapes/Checkpoints.h"
#include "conversion/PlaceTapes/Depth.h"
#include "conversion/PlaceTapes/Locals.h"
#include "conversion/PlaceTapes/SortCosts.h"
#include "conversion/PlaceTapes/Sweeps.h"
#include "ir/Operations.h"
#include "sizing/Costs.h"
#include "sizing/Rows.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_PLACETAPES
#include "conversion/PlaceTapes/Passes.h.inc"

namespace {

/// A lane may end here, with an error: others would wait for it.
bool mayFail(Operation *op) {
  if (auto assertion = dyn_cast<ir::AssertOp>(op))
    return assertion.getRefuses();
  auto count = dyn_cast<ir::TripCountOp>(op);
  return count && !count.cannotFail();
}

/// Whether the host can compute `value`, in front of the range.
bool isOfHost(Value value, ir::RangeOp range) {
  Operation *op = value.getDefiningOp();
  if (!value.getType().isInteger())
    return false;
  if (!range.getBodyRegion().isAncestor(value.getParentRegion()))
    return !op || !isa<ir::SerialOp, ir::RangeOp>(op);
  if (!op || op->getNumRegions())
    return false;
  auto count = dyn_cast<ir::TripCountOp>(op);
  return (count ? count.cannotFail() : isPure(op)) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isOfHost(operand, range); });
}

/// Trip counts that the host can compute come from there.
void hoistBounds(ir::RangeOp range) {
  OpBuilder b(range);
  IRMapping done;
  for (auto loop : ir::all<scf::ForOp>(range))
    if (isOfHost(loop.getUpperBound(), range))
      loop.setUpperBound(
          computeAhead(loop.getUpperBound(), range.getBodyRegion(), b, done));
}

/// In issue slots, of all innermost loops.
int64_t slotsPerRow(const TapeShape &shape, const sizing::Costs &costs) {
  int64_t slots = 0, rows = 0;
  for (Operation *loop : shape.forwardLoops()) {
    const TapeLevel &level = shape.level(loop);
    if (!level.isLeaf())
      continue;
    rows += level.rows();
    loop->walk([&](Operation *op) { slots += costs.of(op); });
  }
  return rows ? llvm::divideCeil(slots, rows) : INT64_MAX;
}

bool hasNest(const TapeShape &shape) {
  return llvm::any_of(shape.level(nullptr).loops, [&](Operation *loop) {
    return !shape.level(loop).isLeaf();
  });
}

int64_t iterationRows(const TapeShape &shape) {
  int64_t most = 0;
  for (Operation *loop : shape.forwardLoops())
    if (shape.level(loop).isLeaf())
      most = std::max(most, static_cast<int64_t>(shape.level(loop).rows()));
  return most;
}

void tellCosts(ir::RangeOp range, const TapeShape &shape,
               const sizing::Costs &costs) {
  auto flag = UnitAttr::get(range.getContext());
  int64_t slots = slotsPerRow(shape, costs);
  if (slots > costs.word())
    range->setAttr(expensiveAttr, flag);
  if (slots > costs.word() && slots <= costs.wordOfNest() && hasNest(shape))
    range->setAttr(moderatelyExpensiveAttr, flag);
  OpBuilder b(range.getContext());
  range->setAttr(iterationRowsAttr, b.getI64IntegerAttr(iterationRows(shape)));
}

/// Whether the host knows the iterations of all loops.
bool isKnown(ir::RangeOp range, const TapeShape &shape) {
  return llvm::all_of(shape.level(nullptr).loops, [&](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    return loop && shape.level(op).isLeaf() &&
           !range.getBodyRegion().isAncestor(
               loop.getUpperBound().getParentRegion());
  });
}

/// Says what the host knows of the need.
void expect(ir::RangeOp range, const TapeShape &shape) {
  RowBuilder b(range.getLoc(), range);
  Value need = b.i64(1), minRows = b.i64(1); // 0 says that nothing is known
  for (Operation *op : shape.level(nullptr).loops) {
    Value iterations = cast<scf::ForOp>(op).getUpperBound();
    int64_t unit = shape.level(op).rows();
    iterations = arith::MinUIOp::create(
        b, arith::MaxSIOp::create(b, iterations, b.i64(0)),
        b.i64(sizing::mostRows));
    Value rows = arith::MulIOp::create(b, iterations, b.i64(unit));
    LoopState state(shape, op);
    Value few = tape::MinRowsOp::create(
        b, b.getI32Type(),
        arith::TruncIOp::create(b, b.getI32Type(), iterations), b.i32(unit),
        b.i32(state.checkpointRows()));
    few = arith::ExtUIOp::create(b, b.getI64Type(), few);
    few = arith::MinUIOp::create(b, few, rows);
    rows = rowsOfCheckpoints(b, state, iterations, b.i64(unit), rows, few);
    need = arith::AddIOp::create(b, need, rows);
    minRows = arith::AddIOp::create(b, minRows, few);
  }
  tape::ExpectOp::create(b, need, minRows);
}

/// Says how many iterations a work item takes, if work items differ; whether
/// they do.
bool tellDepth(ir::RangeOp range, const TapeShape &shape, RowBuilder &b,
               const IRMapping &map, const sizing::Costs &table) {
  Value iterations = emitDepth(range, shape, table, b, map);
  if (!iterations)
    return false;
  SortCosts costs = sortCostsOf(range, shape, table);
  tape::DepthOp::create(b, iterations, costs.iteration,
                        costs.uncoalescedWorkItem, costs.uncoalescedIteration);
  return true;
}

void place(ir::RangeOp range, const TapeShape &shape, const DeviceCosts &costs,
           bool isFree) {
  bool tiles = !shape.level(nullptr).loops.empty();
  if (tiles)
    tellCosts(range, shape, costs.table);
  bool known = tiles && isKnown(range, shape);
  if (known)
    expect(range, shape);
  Block *old = range.getBody();
  auto *body = new Block;
  RowBuilder b(range.getLoc(), range.getContext());
  b.setInsertionPointToEnd(body);
  IRMapping map;
  for (BlockArgument index : old->getArguments())
    map.map(index, body->addArgument(index.getType(), index.getLoc()));
  bool sorts = tiles && isFree && tellDepth(range, shape, b, map, costs.table);
  if (known && !sorts)
    range->setAttr(inOrderAttr, b.getUnitAttr());
  WorkItem item(shape, b, std::move(map), costs);
  emitSweeps(item, tiles);
  Operation *yield = old->getTerminator();
  Values sums;
  for (Value value : yield->getOperands()) {
    Value sum = item.map.lookupOrDefault(value);
    sums.push_back(b.where(item.running, sum));
  }
  ir::YieldOp::create(b, sums);
  Region &region = range.getBodyRegion();
  region.push_back(body);
  old->dropAllUses();
  old->erase();
  if (tiles)
    range->setAttr(tilesAttr, b.getUnitAttr());
}

/// c g strongly times f becomes g strongly times c f: what iterations pass to
/// each other shall wait for one product, not for two. With `fast_math` only.
void shortenChains(ir::RangeOp range) {
  range.walk([](ir::StrongMulOp product) {
    auto scaled = product.getG().getDefiningOp<arith::MulFOp>();
    if (!scaled || !scaled->hasOneUse() || product.getSymmetric() ||
        !matchPattern(scaled.getRhs(), m_Constant()) ||
        matchPattern(scaled.getRhs(), m_AnyZeroFloat()))
      return;
    OpBuilder b(product);
    Value factor = arith::MulFOp::create(b, product.getLoc(), product.getF(),
                                         scaled.getRhs());
    product.getGMutable().assign(scaled.getLhs());
    product.getFMutable().assign(factor);
    scaled.erase();
  });
}

struct PlaceTapes : impl::PlaceTapesBase<PlaceTapes> {
  using PlaceTapesBase::PlaceTapesBase;

  void runOnOperation() override {
    for (auto range : ir::all<ir::RangeOp>(getOperation())) {
      hoistBounds(range);
      StringRef obstacle = tryToPlace(range);
      if (!obstacle.empty() && contains(range.getBodyRegion(), isPush))
        range->setAttr(tapeObstacleAttr,
                       StringAttr::get(&getContext(), obstacle));
    }
  }

  /// Returns what is in the way, if something is.
  StringRef tryToPlace(ir::RangeOp range) {
    if (contains(range.getBodyRegion(), mayFail))
      return "a work item may fail in it";
    if (contains(range.getBodyRegion(),
                 [](Operation *op) { return isa<tape::ClaimOp>(op); }))
      return "a loop in it runs again from checkpoints";
    if (fastMath)
      shortenChains(range);
    StringRef obstacle;
    std::optional<TapeShape> shape = TapeShape::of(range, obstacle);
    if (!shape)
      return obstacle;
    if (deterministic && !isInOrder(range, *shape))
      return "a `deterministic` kernel adds up in it";
    obstacle = obstacleOfLocals(range, *shape, costs().table);
    if (obstacle.empty())
      place(range, *shape, costs(), isFree(range));
    return obstacle;
  }

  DeviceCosts costs() const {
    using sizing::Target;
    return {inlines, fastMath,
            sizing::Costs(fastMath ? Target::GpuFastMath : Target::Gpu)};
  }

  static bool hasReductions(ir::RangeOp range) {
    return contains(range.getBodyRegion(),
                    [](Operation *op) { return op->hasAttr(reductionAttr); });
  }

  /// Whether work items may come in any order. Sums of the program are added up
  /// in one that only extents decide.
  bool isFree(ir::RangeOp range) const {
    return range.getNumResults() == 0 &&
           !(deterministic && hasReductions(range));
  }

  /// Whether bits do not follow from which tiles fit: those that do not run
  /// last.
  static bool isInOrder(ir::RangeOp range, const TapeShape &shape) {
    bool sums = range.getNumResults() || hasReductions(range);
    return !contains(range.getBodyRegion(), addsInAnyOrder) &&
           (!sums || isKnown(range, shape));
  }
};

} // namespace
} // namespace costate::conversion
