#include "conversion/KernelToLLVM/Outline.h"
#include "conversion/PlaceTapes/Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {
#define GEN_PASS_DEF_PLACETAPES
#include "conversion/PlaceTapes/Passes.h.inc"

namespace {

/// A lane may end here, with an error: others would wait for it.
bool mayFail(Operation *op) {
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

Value computeOnHost(Value value, ir::RangeOp range, OpBuilder &b,
                    IRMapping &done) {
  if (!range.getBodyRegion().isAncestor(value.getParentRegion()))
    return value;
  if (Value known = done.lookupOrNull(value))
    return known;
  for (Value operand : value.getDefiningOp()->getOperands())
    done.map(operand, computeOnHost(operand, range, b, done));
  b.clone(*value.getDefiningOp(), done);
  return done.lookup(value);
}

/// Numbers of turns that the host can compute come from there.
void hoistBounds(ir::RangeOp range) {
  SmallVector<scf::ForOp> loops;
  range.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  OpBuilder b(range);
  IRMapping done;
  for (scf::ForOp loop : loops)
    if (isOfHost(loop.getUpperBound(), range))
      loop.setUpperBound(computeOnHost(loop.getUpperBound(), range, b, done));
}

/// Issue slots of a lane, roughly; a function of libclc in full, or one of the
/// hardware's.
int64_t slotsOf(Operation *op, bool fastMath) {
  bool wide =
      llvm::any_of(op->getResultTypes(), [](Type t) { return t.isF64(); });
  if (op->getNumResults() == 0 || op->hasTrait<OpTrait::ConstantLike>())
    return 0;
  if (op->hasTrait<ir::OpTrait::IsFunction>())
    return wide ? 80 : fastMath ? 8 : 34;
  if (isa<arith::DivFOp, math::SqrtOp, ir::DivOp, ir::RemOp>(op))
    return wide ? 30 : fastMath ? 8 : 12;
  if (isa<ir::LoadOp>(op))
    return 8;
  return wide ? 2 : 1;
}

/// Running turns again beats saving them below about 20 slots for each word of
/// 4 bytes, on an H200.
bool isDear(const TapeShape &shape, bool fastMath) {
  constexpr int64_t slotsOfWord = 20;
  int64_t slots = 0, rows = 0;
  for (Operation *loop : shape.forwardLoops()) {
    const TapeLevel &level = shape.level(loop);
    if (!level.isLeaf())
      continue;
    rows += level.rows();
    loop->walk([&](Operation *op) { slots += slotsOf(op, fastMath); });
  }
  return slots > slotsOfWord * rows;
}

/// Whether the host knows the turns of all loops.
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
  Builder b(range.getLoc(), range);
  auto i64 = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value need = i64(1), fewest = i64(1); // 0 says that nothing is known
  for (Operation *op : shape.level(nullptr).loops) {
    Value turns = cast<scf::ForOp>(op).getUpperBound();
    Value unit = i64(shape.level(op).rows());
    Value words = i64(LoopState(shape, op).checkpointRows());
    Value rows = arith::MulIOp::create(b, turns, unit);
    Value few = tape::FewestOp::create(b, b.getI64Type(), turns, unit, words);
    need = arith::AddIOp::create(b, need, rows);
    few = arith::MinUIOp::create(b, few, rows);
    fewest = arith::AddIOp::create(b, fewest, few);
  }
  tape::ExpectOp::create(b, need, fewest);
}

void place(ir::RangeOp range, const TapeShape &shape, bool fastMath) {
  bool tiles = !shape.level(nullptr).loops.empty();
  if (tiles && isDear(shape, fastMath))
    range->setAttr(dearAttr, UnitAttr::get(range.getContext()));
  if (tiles && isKnown(range, shape))
    expect(range, shape);
  Block *old = range.getBody();
  auto *body = new Block;
  Builder b(range.getLoc(), range.getContext());
  b.setInsertionPointToEnd(body);
  IRMapping map;
  for (BlockArgument index : old->getArguments())
    map.map(index, body->addArgument(index.getType(), index.getLoc()));
  Emitter emitter(shape, b, std::move(map), tiles);
  emitter.emit();
  Operation *yield = old->getTerminator();
  Values sums;
  for (Value value : yield->getOperands()) {
    Value sum = emitter.values().lookupOrDefault(value);
    if (Value runs = emitter.runs()) {
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(sum.getType()));
      sum = arith::SelectOp::create(b, runs, sum, zero);
    }
    sums.push_back(sum);
  }
  ir::YieldOp::create(b, sums);
  Region &region = range.getBodyRegion();
  region.push_back(body);
  old->dropAllUses();
  old->erase();
  if (tiles)
    range->setAttr(tilesAttr, b.getUnitAttr());
}

struct PlaceTapes : impl::PlaceTapesBase<PlaceTapes> {
  using PlaceTapesBase::PlaceTapesBase;

  void runOnOperation() override {
    SmallVector<ir::RangeOp> ranges;
    getOperation().walk([&](ir::RangeOp range) { ranges.push_back(range); });
    for (ir::RangeOp range : ranges) {
      hoistBounds(range);
      if (!contains(range.getBodyRegion(), mayFail))
        if (std::optional<TapeShape> shape = TapeShape::of(range))
          if (!deterministic || isInOrder(range, *shape))
            place(range, *shape, fastMath);
    }
  }

  /// Whether bits do not follow from which tiles fit: those that do not run
  /// last.
  static bool isInOrder(ir::RangeOp range, const TapeShape &shape) {
    Region &body = range.getBodyRegion();
    auto isReduction = [](Operation *op) { return op->hasAttr(reductionAttr); };
    bool sums = range.getNumResults() || contains(body, isReduction);
    return !contains(body, addsInAnyOrder) && (!sums || isKnown(range, shape));
  }
};

} // namespace
} // namespace costate::conversion
