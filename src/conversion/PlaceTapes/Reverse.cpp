#include "conversion/PlaceTapes/Reverse.h"

#include "conversion/PlaceTapes/Bounds.h"
#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {

Values undoNest(WorkItem &item, scf::ForOp reversed,
                const Iterations &iterations, Value &row, ValueRange adjoints,
                const IRMapping &at) {
  RowBuilder &b = item.b;
  const TapeLevel &level = item.shape.level(item.shape.forwardOf(reversed));
  Values inits(adjoints);
  inits.push_back(row);
  Value count = b.sub(iterations.end, iterations.first);
  Values ends = b.loop(b.i32(0), count, inits, [&](Value j, ValueRange args) {
    ValueRange carried = args.drop_back();
    Value k = b.sub(b.sub(iterations.end, b.i32(1)), j);
    Value mine = b.less(k, iterations.own);
    IRMapping inner = at;
    Value number = b.sub(b.sub(iterations.own, b.i32(1)), k);
    inner.map(reversed.getInductionVar(), b.index(number));
    inner.map(reversed.getRegionIterArgs(), carried);
    ReverseWalk walk(item, level, inner, args.back(), false);
    walk.walk(*reversed.getBody(), mine);
    Values next =
        mapped(reversed.getBody()->getTerminator()->getOperands(), inner);
    b.selectAll(mine, next, carried);
    next.push_back(walk.start());
    return next;
  });
  row = ends.pop_back_val();
  return ends;
}

void undoInner(WorkItem &item, scf::ForOp reversed, Value pred, IRMapping &at,
               Value &row) {
  RowBuilder &b = item.b;
  const TapeLevel &level = item.shape.level(item.shape.forwardOf(reversed));
  Value own = ownIterations(item, reversed, pred, at);
  Value most = maxTripCount(item, reversed, pred, own);
  Values inits = mapped(reversed.getInitArgs(), at);
  Iterations iterations{b.i32(0), most, own};
  Values ends;
  if (level.isLeaf()) {
    row = b.sub(row, b.times(most, level.rows()));
    ends = undoLeaf(item, reversed, iterations, row, inits, at);
  } else {
    ends = undoNest(item, reversed, iterations, row, inits, at);
  }
  at.map(reversed.getResults(), ends);
}

} // namespace costate::conversion
