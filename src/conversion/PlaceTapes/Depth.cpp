#include "conversion/PlaceTapes/Depth.h"

#include "conversion/Ahead.h"
#include "conversion/PlaceTapes/Gate.h"
#include "conversion/PlaceTapes/RowBuilder.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {
namespace {

class Depth {
public:
  Depth(ir::RangeOp range, int64_t mostOps, RowBuilder &b, IRMapping &map)
      : range(range), mostOps(mostOps), b(b), map(map) {}

  /// Null if it is not known, or the same for all.
  Value tripCountOf(Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    SmallVector<Gate> gates = gatesOf(op);
    if (!loop || (gates.empty() && isSame(loop.getUpperBound())))
      return nullptr;
    int64_t left = mostOps;
    bool known = isKnown(loop.getUpperBound(), left);
    for (Gate gate : gates)
      known = known && isKnown(gate.condition, left);
    return known ? emit(gates, loop.getUpperBound()) : nullptr;
  }

  /// `iterations`, or less than 0 where a work item does not pass `gate`; null
  /// if that is not known.
  Value iterationsBehind(Gate gate, Value iterations) {
    int64_t left = mostOps;
    if (!isKnown(gate.condition, left))
      return nullptr;
    Value passes = compute(gate.condition);
    Value none = b.i64(-1);
    return gate.isOpen ? arith::SelectOp::create(b, passes, iterations, none)
                       : arith::SelectOp::create(b, passes, none, iterations);
  }

private:
  bool isOutside(Value value) {
    return !range.getBodyRegion().isAncestor(value.getParentRegion());
  }

  bool isSame(Value value) {
    return isOutside(value) || matchPattern(value, m_Constant());
  }

  bool isKnown(Value value, int64_t &left) {
    return isKnownAhead(value, range.getBodyRegion(), left);
  }

  Value compute(Value value) {
    return computeAhead(value, range.getBodyRegion(), b, map);
  }

  /// What is behind a gate is computed only there: it may not exist elsewhere.
  Value emit(ArrayRef<Gate> gates, Value bound) {
    if (gates.empty())
      return compute(bound);
    Gate first = gates.front();
    Value condition = compute(first.condition);
    auto branch =
        scf::IfOp::create(b, b.getI64Type(), condition, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    Region *regions[] = {&branch.getThenRegion(), &branch.getElseRegion()};
    for (bool isThen : {true, false}) {
      b.setInsertionPointToStart(&regions[isThen ? 0 : 1]->front());
      Value iterations =
          isThen == first.isOpen ? emit(gates.drop_front(), bound) : b.i64(0);
      scf::YieldOp::create(b, iterations);
    }
    return branch.getResult(0);
  }

  ir::RangeOp range;
  int64_t mostOps; ///< more take longer than they save
  RowBuilder &b;
  IRMapping &map;
};

/// Before the pivot nothing is written: what memory says there, it says in
/// front of the range.
bool isLeading(Value condition, const TapeShape &shape) {
  Operation *op = condition.getDefiningOp();
  return op && op->getBlock() == shape.body() &&
         op->isBeforeInBlock(shape.pivot);
}

} // namespace

Value emitDepth(ir::RangeOp range, const TapeShape &shape,
                const sizing::Costs &costs, OpBuilder &builder, IRMapping map) {
  int64_t mostOps = costs.tiles().depth;
  RowBuilder b(range.getLoc(), builder);
  Value sum;
  for (Operation *loop : shape.level(nullptr).loops) {
    IRMapping own = map;
    Value iterations = Depth(range, mostOps, b, own).tripCountOf(loop);
    if (!iterations)
      continue;
    iterations = arith::MaxSIOp::create(b, iterations, b.i64(0));
    sum = sum ? arith::AddIOp::create(b, sum, iterations).getResult()
              : iterations;
  }
  if (std::optional<Gate> gate = effectGateOf(range);
      gate && isLeading(gate->condition, shape)) {
    Value iterations = sum ? sum : b.i64(sizing::guessedDepth);
    IRMapping own = map;
    if (Value gated =
            Depth(range, mostOps, b, own).iterationsBehind(*gate, iterations))
      return gated;
  }
  return sum;
}

} // namespace costate::conversion
