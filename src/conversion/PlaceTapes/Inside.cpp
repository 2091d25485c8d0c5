#include "conversion/PlaceTapes/Inside.h"

#include "conversion/PlaceTapes/Checkpoints.h"
#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Locals.h"
#include "conversion/PlaceTapes/Sweeps.h"
#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {

/// One iteration of a loop of `outer`, as a work item of its own that starts
/// at `row`; `active`: of this lane.
static WorkItem insideOf(const WorkItem &outer, Value active, Value row) {
  WorkItem inside(outer.shape, outer.b, outer.map, outer.costs);
  inside.active = inside.running = active;
  inside.row = row;
  return inside;
}

/// The forward sweep of this iteration; returns the state after it.
static Values sweep(WorkItem &inside, const LoopState &loop, ValueRange state,
                    Value k) {
  const TapeLevel &level = inside.shape.level(loop.op());
  startForward(inside, level);
  Block *body =
      enterIteration(inside, loop, state, k, inside.active, inside.map);
  ForwardWalk walk(inside, level, inside.map, {Keep::Nothing, {}, {}}, true);
  walk.walk(*body, inside.active);
  Values next = mapped(loop.yields(), inside.map);
  inside.b.selectAll(inside.active, next, state);
  return next;
}

/// The reverse sweep of this iteration, the `k`th that is undone.
static Values reverse(WorkItem &inside, scf::ForOp reversed, Value k,
                      ValueRange adjoints) {
  inside.map.map(reversed.getInductionVar(), k);
  inside.map.map(reversed.getRegionIterArgs(), adjoints);
  const TapeLevel &level = inside.shape.level(inside.shape.forwardOf(reversed));
  ReverseWalk walk(inside, level, inside.map, {}, true);
  walk.walk(*reversed.getBody(), inside.active);
  Values next =
      mapped(reversed.getBody()->getTerminator()->getOperands(), inside.map);
  inside.b.selectAll(inside.active, next, adjoints);
  return next;
}

/// Whether the inside of all iterations fits after so many rows of checkpoints.
static Value fitsInside(WorkItem &item, const OpenLoop &loop,
                        Value checkpoints) {
  RowBuilder &b = item.b;
  Values inits = loop.inits;
  inits.push_back(b.boolean(true));
  Values ends =
      b.loop(b.i32(0), loop.most, inits, [&](Value k, ValueRange args) {
        tape::FenceOp::create(b);
        Value active = b.less(k, loop.own);
        WorkItem inside = insideOf(item, active, b.add(item.row, checkpoints));
        Values next = sweep(inside, loop.state, args.drop_back(), k);
        next.push_back(b.both(args.back(), inside.fits));
        return next;
      });
  setElements(b, loop.locals, loop.elements);
  return ends.back();
}

void planInside(WorkItem &item, OpenLoop &loop, Value left) {
  RowBuilder &b = item.b;
  Value one = b.i32(1);
  Value segment =
      tape::SegmentOp::create(b, b.getI32Type(), loop.most, one, one);
  Value segments =
      arith::DivUIOp::create(b, b.sub(b.add(loop.most, segment), one), segment);
  Value checkpoints =
      b.times(b.add(segments, segment), loop.state.checkpointRows());
  Value drains = tape::DrainsOp::create(b, b.getI1Type());
  Value isLeft = b.negated(loop.fit);
  Value isTried = b.both(drains, b.both(isLeft, b.less(checkpoints, left)));
  Values found = b.branch(isTried, b.getI1Type(), [&] {
    return Values{fitsInside(item, loop, checkpoints)};
  });
  loop.inside = found[0];
  loop.fit = b.select(loop.inside, b.boolean(true), loop.fit);
  loop.kept = b.where(b.negated(loop.inside), loop.kept);
  loop.segment = b.select(loop.inside, segment, loop.segment);
  loop.segments = b.select(loop.inside, segments, loop.segments);
}

Values undoInside(WorkItem &item, const OpenLoop &loop, scf::ForOp reversed,
                  const Iterations &iterations, ValueRange state,
                  ValueRange adjoints) {
  RowBuilder &b = item.b;
  int64_t words = loop.state.checkpointRows();
  auto checkpointOf = [&](Value k) {
    return b.add(loop.free, b.times(b.sub(k, iterations.first), words));
  };
  b.loop(iterations.first, iterations.end, state, [&](Value k, ValueRange now) {
    writeCheckpoint(b, loop, checkpointOf(k), now);
    Iterations iteration{k, b.add(k, b.i32(1)), iterations.own};
    return run(item, loop.state, iteration, now, item.map,
               {Keep::Nothing, {}, {}})
        .state;
  });
  Value free = b.add(loop.free, b.times(loop.segment, words));
  Value count = b.sub(iterations.end, iterations.first);
  return b.loop(b.i32(0), count, adjoints, [&](Value j, ValueRange carried) {
    tape::FenceOp::create(b);
    Value k = b.sub(b.sub(iterations.end, b.i32(1)), j);
    WorkItem inside = insideOf(item, b.less(k, iterations.own), free);
    sweep(inside, loop.state, readCheckpoint(b, loop, checkpointOf(k), k), k);
    Value number = b.index(b.sub(b.sub(iterations.own, b.i32(1)), k));
    return reverse(inside, reversed, number, carried);
  });
}

} // namespace costate::conversion
