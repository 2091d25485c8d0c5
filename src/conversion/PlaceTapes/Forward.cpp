#include "conversion/PlaceTapes/Forward.h"

#include "conversion/PlaceTapes/Bounds.h"
#include "conversion/PlaceTapes/StraightCode.h"
#include "conversion/PlaceTapes/Walk.h"

using namespace mlir;

namespace costate::conversion {

//===-- One iteration -----------------------------------------------------===//

Values passedOn(WorkItem &item, const LoopState &loop, ValueRange state,
                Value pred, IRMapping &at) {
  auto open = cast<scf::WhileOp>(loop.op());
  at.map(loop.arguments(), state);
  SmallVector<Operation *> ops;
  for (Operation &op : open.getBeforeBody()->without_terminator())
    ops.push_back(&op);
  cloneWhere(item, ops, pred, at, {Keep::Nothing, {}, {}});
  return mapped(open.getConditionOp().getArgs(), at);
}

Block *enterIteration(WorkItem &item, const LoopState &loop, ValueRange state,
                      Value k, Value pred, IRMapping &at) {
  if (auto counted = dyn_cast<scf::ForOp>(loop.op())) {
    at.map(counted.getInductionVar(), item.b.index(k));
    at.map(loop.arguments(), state);
    return counted.getBody();
  }
  Block *body = cast<scf::WhileOp>(loop.op()).getAfterBody();
  Values passed = passedOn(item, loop, state, pred, at);
  at.map(body->getArguments(), passed);
  return body;
}

static Values iteration(WorkItem &item, const LoopState &loop, ValueRange state,
                        Value k, Value pred, IRMapping at, Place &place) {
  Block *body = enterIteration(item, loop, state, k, pred, at);
  ForwardWalk walk(item, item.shape.level(loop.op()), at, place, false);
  walk.walk(*body, pred);
  place.row = walk.end();
  return mapped(loop.yields(), at);
}

Values results(WorkItem &item, const LoopState &loop, ValueRange state,
               Value pred, IRMapping at) {
  return loop.isCounted() ? Values(state)
                          : passedOn(item, loop, state, pred, at);
}

//===-- Some iterations ---------------------------------------------------===//

/// Each lane runs its own iterations.
static Outcome runLeaf(WorkItem &item, const LoopState &loop,
                       const Iterations &iterations, ValueRange state,
                       const IRMapping &at, const Place &place) {
  RowBuilder &b = item.b;
  int64_t rows = item.shape.level(loop.op()).rows();
  Outcome out;
  if (place.keep != Keep::Size) {
    // Counted from 0, as the back end unrolls loops.
    Value end =
        b.most(b.least(iterations.end, iterations.own), iterations.first);
    Value count = b.sub(end, iterations.first);
    Value room = roomOf(b, place, rows);
    out.state = b.loop(b.i32(0), count, state, [&](Value j, ValueRange s) {
      Place here = leafIteration(b, place, j, room, rows);
      return iteration(item, loop, s, b.add(iterations.first, j), {}, at, here);
    });
  }
  if (place.counts()) {
    out.row = rowAfter(b, place, b.sub(iterations.end, iterations.first), rows);
    out.unit = b.i32(rows);
  }
  return out;
}

/// All lanes run the iterations of the one that has most: they meet in them.
static Outcome runNest(WorkItem &item, const LoopState &loop,
                       const Iterations &iterations, ValueRange state,
                       const IRMapping &at, const Place &place) {
  RowBuilder &b = item.b;
  Values inits(state);
  if (place.counts()) {
    inits.push_back(place.row);
    inits.push_back(b.i32(1));
  }
  auto body = [&](Value k, ValueRange args) {
    ValueRange s = args.take_front(state.size());
    Value own = b.less(k, iterations.own);
    Place here = place.counts() ? place.at(args[state.size()]) : place;
    Values next = iteration(item, loop, s, k, own, at, here);
    b.selectAll(own, next, s);
    if (place.counts()) {
      Value rows = b.sub(here.row, args[state.size()]);
      next.push_back(here.row);
      next.push_back(b.most(args.back(), rows));
    }
    return next;
  };
  Values ends = b.loop(iterations.first, iterations.end, inits, body);
  Outcome out;
  out.state.assign(ends.begin(), ends.begin() + state.size());
  if (place.counts()) {
    out.row = ends[state.size()];
    out.unit = ends.back();
  }
  return out;
}

Outcome run(WorkItem &item, const LoopState &loop, const Iterations &iterations,
            ValueRange state, const IRMapping &at, const Place &place) {
  return item.shape.level(loop.op()).isLeaf()
             ? runLeaf(item, loop, iterations, state, at, place)
             : runNest(item, loop, iterations, state, at, place);
}

//===-- Loops in a level --------------------------------------------------===//

static Outcome runCounted(WorkItem &item, const LoopState &loop, Value pred,
                          ValueRange inits, const IRMapping &at,
                          const Place &place) {
  bool isLeaf = item.shape.level(loop.op()).isLeaf();
  Value own = ownIterations(item, loop.op(), pred, at);
  Value end = own;
  if (place.counts() || !isLeaf)
    end = maxTripCount(item, loop.op(), pred, own);
  Outcome out = run(item, loop, {item.b.i32(0), end, own}, inits, at, place);
  if (place.keep == Keep::Size && isLeaf)
    out.state = Values(inits); // no number of rows follows from it
  return out;
}

void runInner(WorkItem &item, Operation *op, Value pred, IRMapping &at,
              Place &place) {
  LoopState loop(item.shape, op);
  Values inits = mapped(loop.inits(), at);
  Outcome out = loop.isCounted()
                    ? runCounted(item, loop, pred, inits, at, place)
                    : runOpen(item, loop, pred, inits, at, place);
  at.map(op->getResults(), out.state);
  place.row = out.row;
}

} // namespace costate::conversion
