#include "conversion/PlaceTapes/Bounds.h"

#include "sizing/Rows.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

/// Loops up to less than 0 take no iteration; else iterations are unsigned.
static Value iterationsUpTo(RowBuilder &b, Value bound) {
  if (auto count = bound.getDefiningOp<ir::TripCountOp>();
      count && matchPattern(count.getLo(), m_Zero()) &&
      matchPattern(count.getStep(), m_One()))
    bound = count.getHi();
  if (auto wider = bound.getDefiningOp<arith::ExtSIOp>();
      wider && wider.getIn().getType().isInteger(32)) {
    Value iterations = arith::MaxSIOp::create(b, wider.getIn(), b.i32(0));
    return b.least(iterations, b.i32(sizing::mostRows));
  }
  Value iterations = arith::MaxSIOp::create(b, bound, b.i64(0));
  iterations = b.least(iterations, b.i64(sizing::mostRows));
  return arith::TruncIOp::create(b, b.getI32Type(), iterations);
}

Value ownIterations(WorkItem &item, Operation *loop, Value pred,
                    const IRMapping &at) {
  Value bound = at.lookupOrDefault(cast<scf::ForOp>(loop).getUpperBound());
  return item.b.where(pred, iterationsUpTo(item.b, bound));
}

bool areSame(const WorkItem &item, Operation *op, Value pred) {
  Value bound = cast<scf::ForOp>(op).getUpperBound();
  Region &range = *item.shape.body()->getParent();
  bool same = !range.isAncestor(bound.getParentRegion()) ||
              matchPattern(bound, m_Constant());
  // Where lanes branch, perhaps none of them comes here.
  bool all = !pred || pred == item.active;
  return same && all;
}

Value maxTripCount(WorkItem &item, Operation *op, Value pred, Value own) {
  Value bound = cast<scf::ForOp>(op).getUpperBound();
  return areSame(item, op, pred)
             ? iterationsUpTo(item.b, item.map.lookupOrDefault(bound))
             : item.b.warpMax(own);
}

} // namespace costate::conversion
