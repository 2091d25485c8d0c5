#include "conversion/PlaceTapes/Plan.h"

#include "conversion/PlaceTapes/Bounds.h"
#include "conversion/PlaceTapes/Checkpoints.h"
#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Inside.h"

using namespace mlir;

namespace costate::conversion {

Outcome countRows(WorkItem &item, OpenLoop &loop, Value pred, Value left) {
  RowBuilder &b = item.b;
  Operation *op = loop.state.op();
  Place place{Keep::Size, item.row, {}};
  if (!loop.state.isSized())
    place = {Keep::Guarded, item.row, b.add(item.row, left)};
  if (!loop.state.isCounted()) {
    Outcome whole =
        runOpen(item, loop.state, pred, loop.inits, item.map, place);
    loop.own = whole.iterations;
    loop.most = b.warpMax(loop.own);
    return whole;
  }
  loop.same = areSame(item, op, pred);
  loop.own = ownIterations(item, op, pred, item.map);
  // What follows from the iterations shall not wait in registers.
  loop.most = b.warpMax(loop.own);
  return run(item, loop.state, {b.i32(0), loop.most, loop.own}, loop.inits,
             item.map, place);
}

/// Of `left` rows, those that a loop may take that can do with `few`; the last
/// one takes all.
static Value share(WorkItem &item, Value left, Value few) {
  RowBuilder &b = item.b;
  if (item.loopsLeft == 1)
    return left;
  Value part = arith::DivUIOp::create(b, left, b.i32(item.loopsLeft));
  Value lowMemory = tape::LowMemoryOp::create(b, b.getI1Type());
  Value sufficient = tape::SufficientOp::create(b, b.getI1Type());
  part = b.select(sufficient, left, part);
  return b.select(lowMemory, b.least(few, left), part);
}

/// Whether `kept` is a trip count that tape::KeptOp has found.
static Value fits(RowBuilder &b, Value kept, Value never) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, kept, never);
}

/// The kept iterations, those of a segment, and the segments, where not all are
/// kept in `mine` rows.
static Values cut(RowBuilder &b, Value iterations, Value unit, Value words,
                  Value mine, Value never) {
  Type type = b.getI32Type();
  Value kept = tape::KeptOp::create(b, type, iterations, unit, words, mine);
  Value fit = fits(b, kept, never),
        rest = b.sub(iterations, b.where(fit, kept));
  Value segment = tape::SegmentOp::create(b, type, rest, unit, words);
  segment = b.select(fit, segment, rest);
  Value more = b.add(rest, segment);
  more = b.sub(more, b.i32(1));
  return {kept, segment, arith::DivUIOp::create(b, more, segment)};
}

Value planSegments(WorkItem &item, OpenLoop &loop, const Outcome &whole,
                   Value left) {
  RowBuilder &b = item.b;
  Type type = b.getI32Type();
  Value words = b.i32(loop.state.checkpointRows()), unit = whole.unit;
  Value rows = b.sub(whole.row, item.row);
  Value few = tape::MinRowsOp::create(b, type, loop.most, unit, words);
  few = b.least(few, rows);
  Value mine = share(item, left, few), never = b.i32(-1), need = rows;
  if (loop.state.checkpoints()) {
    need = rowsOfCheckpoints(b, loop.state, b.index(loop.most), b.index(unit),
                             b.index(rows), b.index(few));
    need = arith::TruncIOp::create(b, type, need);
    mine = b.least(mine, need);
  }
  Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, rows, mine);
  Values plan = b.branch(
      all, {type, type, type},
      [&] { return Values{loop.most, loop.most, b.i32(0)}; },
      [&] { return cut(b, loop.most, unit, words, mine, never); });
  loop.fit = fits(b, plan[0], never);
  loop.kept = b.where(loop.fit, plan[0]);
  loop.segment = plan[1];
  loop.segments = plan[2];
  if (!item.shape.level(loop.state.op()).isLeaf())
    planInside(item, loop, left);
  item.need = b.addUpTo(item.need, need);
  item.minRows = b.addUpTo(item.minRows, few);
  item.fits = b.both(item.fits, loop.fit);
  return all;
}

} // namespace costate::conversion
