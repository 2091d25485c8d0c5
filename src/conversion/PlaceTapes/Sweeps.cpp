#include "conversion/PlaceTapes/Sweeps.h"

#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {

void startForward(WorkItem &item, const TapeLevel &level) {
  item.loopsLeft = level.loops.size();
  item.need = item.minRows = item.b.i32(0);
  item.fits = item.b.boolean(true);
}

void emitSweeps(WorkItem &item, bool tiles) {
  RowBuilder &b = item.b;
  const TapeLevel &level = item.shape.level(nullptr);
  if (tiles) {
    item.active = tape::ActiveOp::create(b, b.getI1Type());
    item.row = b.i32(0);
    startForward(item, level);
  }
  Block *body = item.shape.body();
  tape::PivotOp pivot = item.shape.pivot;
  ForwardWalk forward(item, level, item.map, {Keep::Nothing, {}, {}}, true);
  forward.walk(body->begin(), pivot->getIterator(), item.active);
  if (tiles) {
    tape::ReportOp::create(b, item.fits, item.need, item.minRows);
    item.running = b.both(item.active, item.fits);
  }
  ReverseWalk reverse(item, level, item.map, {}, true);
  reverse.walk(std::next(pivot->getIterator()),
               body->getTerminator()->getIterator(), item.running);
}

} // namespace costate::conversion
