/// Iterations of the forward sweep.

#include "conversion/PlaceTapes/Rows.h"
#include "conversion/PlaceTapes/Walk.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

/// What an open loop passes on at `state`.
Values Emitter::passedOn(const LoopState &loop, ValueRange state, Value pred,
                         IRMapping &at) {
  auto open = cast<scf::WhileOp>(loop.op());
  at.map(loop.arguments(), state);
  SmallVector<Operation *> ops;
  for (Operation &op : open.getBeforeBody()->without_terminator())
    ops.push_back(&op);
  straight(ops, pred, at, {Keep::Nothing, {}, {}});
  return mapped(open.getConditionOp().getArgs(), at);
}

Block *Emitter::enterIteration(const LoopState &loop, ValueRange state, Value k,
                               Value pred, IRMapping &at) {
  if (auto counted = dyn_cast<scf::ForOp>(loop.op())) {
    at.map(counted.getInductionVar(), index(k));
    at.map(loop.arguments(), state);
    return counted.getBody();
  }
  Block *body = cast<scf::WhileOp>(loop.op()).getAfterBody();
  Values passed = passedOn(loop, state, pred, at);
  at.map(body->getArguments(), passed);
  return body;
}

Values Emitter::iteration(const LoopState &loop, ValueRange state, Value k,
                          Value pred, IRMapping at, Place &place) {
  Block *body = enterIteration(loop, state, k, pred, at);
  ForwardWalk walk(*this, shape.level(loop.op()), at, place, false);
  walk.walk(body->begin(), body->getTerminator()->getIterator(), pred);
  place.row = walk.end();
  return mapped(loop.yields(), at);
}

Values Emitter::results(const LoopState &loop, ValueRange state, Value pred,
                        IRMapping at) {
  return loop.isCounted() ? Values(state) : passedOn(loop, state, pred, at);
}

Outcome Emitter::run(const LoopState &loop, const Iterations &iterations,
                     ValueRange state, const IRMapping &at,
                     const Place &place) {
  return shape.level(loop.op()).isLeaf()
             ? runLeaf(loop, iterations, state, at, place)
             : runNest(loop, iterations, state, at, place);
}

/// Iterations of `rows` rows each that can be written.
Value Emitter::roomOf(const Place &place, int64_t rows) {
  if (place.keep != Keep::Guarded)
    return {};
  Value left = sub(most(place.limit, place.row), place.row);
  return rows == 1 ? left : arith::DivUIOp::create(b, left, i32(rows));
}

Place Emitter::leafIteration(const Place &place, Value iteration, Value room,
                             int64_t rows) {
  if (!place.writes())
    return place;
  Place here = place.at(add(place.row, times(iteration, rows)));
  if (room)
    here.fits = less(iteration, room);
  return here;
}

Value Emitter::rowAfter(const Place &place, Value iterations, int64_t rows) {
  return place.measures() ? addUpTo(place.row, timesUpTo(iterations, rows))
                          : add(place.row, times(iterations, rows));
}

/// Each lane runs its own iterations.
Outcome Emitter::runLeaf(const LoopState &loop, const Iterations &iterations,
                         ValueRange state, const IRMapping &at,
                         const Place &place) {
  int64_t rows = shape.level(loop.op()).rows();
  Outcome out;
  if (place.keep != Keep::Size) {
    // Counted from 0, as the back end unrolls loops.
    Value end = most(least(iterations.end, iterations.own), iterations.first);
    Value count = sub(end, iterations.first);
    Value room = roomOf(place, rows);
    out.state = this->loop(i32(0), count, state, [&](Value j, ValueRange s) {
      Place here = leafIteration(place, j, room, rows);
      return iteration(loop, s, add(iterations.first, j), {}, at, here);
    });
  }
  if (place.counts()) {
    out.row = rowAfter(place, sub(iterations.end, iterations.first), rows);
    out.unit = i32(rows);
  }
  return out;
}

/// All lanes run the iterations of the one that has most: they meet in them.
Outcome Emitter::runNest(const LoopState &loop, const Iterations &iterations,
                         ValueRange state, const IRMapping &at,
                         const Place &place) {
  Values inits(state);
  if (place.counts()) {
    inits.push_back(place.row);
    inits.push_back(i32(1));
  }
  Values ends = this->loop(
      iterations.first, iterations.end, inits, [&](Value k, ValueRange args) {
        ValueRange s = args.take_front(state.size());
        Value own = less(k, iterations.own);
        Place here = place.counts() ? place.at(args[state.size()]) : place;
        Values next = iteration(loop, s, k, own, at, here);
        for (auto [value, old] : llvm::zip(next, s))
          value = select(own, value, old);
        if (place.counts()) {
          Value rows = sub(here.row, args[state.size()]);
          next.push_back(here.row);
          next.push_back(most(args.back(), rows));
        }
        return next;
      });
  Outcome out;
  out.state.assign(ends.begin(), ends.begin() + state.size());
  if (place.counts()) {
    out.row = ends[state.size()];
    out.unit = ends.back();
  }
  return out;
}

//===-- while -------------------------------------------------------------===//

Outcome Emitter::runOpen(const LoopState &loop, Value pred, ValueRange state,
                         const IRMapping &at, const Place &place) {
  return shape.level(loop.op()).isLeaf()
             ? runOpenLeaf(loop, pred, state, at, place)
             : runOpenNest(loop, pred, state, at, place);
}

/// What it passes on, and whether it goes on.
Values Emitter::condition(scf::WhileOp open, ValueRange state, IRMapping at) {
  at.map(open.getBeforeArguments(), state);
  for (Operation &op : open.getBeforeBody()->without_terminator())
    clone(&op, at, {Keep::Nothing, {}, {}});
  Values values = mapped(open.getConditionOp().getArgs(), at);
  values.push_back(at.lookupOrDefault(open.getConditionOp().getCondition()));
  return values;
}

Values Emitter::openLoop(TypeRange types, ValueRange inits, OpenBody before,
                         OpenBody after) {
  auto condition = [&](OpBuilder &, Location, ValueRange args) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(args.front().getParentBlock());
    Values next = before(args);
    Value goesOn = next.pop_back_val();
    scf::ConditionOp::create(b, goesOn, next);
  };
  auto iteration = [&](OpBuilder &, Location, ValueRange args) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(args.front().getParentBlock());
    scf::YieldOp::create(b, after(args));
  };
  auto loop = scf::WhileOp::create(b, types, inits, condition, iteration);
  return Values(loop.getResults());
}

Outcome Emitter::runOpenLeaf(const LoopState &loop, Value pred,
                             ValueRange state, const IRMapping &at,
                             const Place &place) {
  auto open = cast<scf::WhileOp>(loop.op());
  int64_t rows = shape.level(open).rows();
  Value room = roomOf(place, rows);
  auto before = [&](ValueRange args) {
    Values next = condition(open, args.drop_back(), at);
    next.insert(std::prev(next.end()), args.back());
    return next;
  };
  auto after = [&](ValueRange args) {
    IRMapping inner = at;
    inner.map(open.getAfterArguments(), args.drop_back());
    Place here = leafIteration(place, args.back(), room, rows);
    ForwardWalk walk(*this, shape.level(open), inner, here, false);
    Block *body = open.getAfterBody();
    walk.walk(body->begin(), body->getTerminator()->getIterator(), {});
    Values next = mapped(loop.yields(), inner);
    next.push_back(addUpTo(args.back(), i32(1)));
    return next;
  };
  SmallVector<Type> types(open.getResultTypes());
  types.push_back(b.getI32Type());
  Values ends = branch(pred, types, [&] {
    Values inits(state);
    inits.push_back(i32(0));
    return openLoop(types, inits, before, after);
  });
  Outcome out;
  out.iterations = ends.pop_back_val();
  out.state = ends;
  if (place.counts()) {
    out.row = rowAfter(place, warpMax(out.iterations), rows);
    out.unit = i32(rows);
  }
  return out;
}

/// All lanes iterate until the last one is done.
struct Emitter::OpenNest {
  const LoopState &loop;
  const IRMapping &at;
  const Place &place;
  scf::WhileOp open = cast<scf::WhileOp>(loop.op());
  // Carried: the state, the results so far, and after them
  unsigned results = loop.inits().size();
  unsigned goesOn = results + open.getNumResults(); ///< whether this lane does
  unsigned iterations = goesOn + 1;
  unsigned row = iterations + 1;
  unsigned unit = row + 1; ///< the deepest iteration
};

Values Emitter::enterNest(const OpenNest &nest, ValueRange carried) {
  scf::WhileOp open = nest.open;
  Value goesOn = carried[nest.goesOn];
  SmallVector<Type> types(open.getResultTypes());
  types.push_back(b.getI1Type());
  Values now = branch(goesOn, types, [&] {
    return condition(open, carried.take_front(nest.results), nest.at);
  });
  Values next(carried);
  for (unsigned k = nest.results; k < nest.goesOn; ++k)
    next[k] = select(goesOn, now[k - nest.results], carried[k]);
  next[nest.goesOn] = both(goesOn, now.back());
  Value flag = arith::ExtUIOp::create(b, b.getI32Type(), next[nest.goesOn]);
  next.push_back(less(i32(0), warpMax(flag)));
  return next;
}

Values Emitter::nestIteration(const OpenNest &nest, ValueRange carried) {
  scf::WhileOp open = nest.open;
  Value own = carried[nest.goesOn], start = carried[nest.row];
  IRMapping inner = nest.at;
  inner.map(open.getAfterArguments(),
            carried.slice(nest.results, nest.goesOn - nest.results));
  bool counts = nest.place.counts();
  Place here = counts ? nest.place.at(start) : nest.place;
  ForwardWalk walk(*this, shape.level(open), inner, here, false);
  Block *body = open.getAfterBody();
  walk.walk(body->begin(), body->getTerminator()->getIterator(), own);
  Values next(carried);
  for (auto [k, value] : llvm::enumerate(mapped(nest.loop.yields(), inner)))
    next[k] = select(own, value, carried[k]);
  Value taken = arith::ExtUIOp::create(b, b.getI32Type(), own);
  next[nest.iterations] = addUpTo(carried[nest.iterations], taken);
  if (counts) {
    next[nest.row] = walk.end();
    next[nest.unit] = most(carried[nest.unit], sub(next[nest.row], start));
  }
  return next;
}

Outcome Emitter::runOpenNest(const LoopState &loop, Value pred,
                             ValueRange state, const IRMapping &at,
                             const Place &place) {
  OpenNest nest{loop, at, place};
  Values inits(state);
  for (Type type : nest.open.getResultTypes())
    inits.push_back(zeroOf(type));
  inits.push_back(
      pred ? pred
           : arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult());
  inits.push_back(i32(0));
  inits.push_back(place.counts() ? place.row : i32(0));
  inits.push_back(i32(1));
  Values ends = openLoop(
      llvm::to_vector(TypeRange(ValueRange(inits))), inits,
      [&](ValueRange carried) { return enterNest(nest, carried); },
      [&](ValueRange carried) { return nestIteration(nest, carried); });
  Outcome out;
  out.state.assign(ends.begin() + nest.results, ends.begin() + nest.goesOn);
  out.iterations = ends[nest.iterations];
  if (place.counts()) {
    out.row = ends[nest.row];
    out.unit = ends[nest.unit];
  }
  return out;
}

//===-- Loops in a level --------------------------------------------------===//

Value Emitter::iterationsUpTo(Value bound) {
  if (auto count = bound.getDefiningOp<ir::TripCountOp>();
      count && matchPattern(count.getLo(), m_Zero()) &&
      matchPattern(count.getStep(), m_One()))
    bound = count.getHi();
  if (auto wider = bound.getDefiningOp<arith::ExtSIOp>();
      wider && wider.getIn().getType().isInteger(32)) {
    Value iterations = arith::MaxSIOp::create(b, wider.getIn(), i32(0));
    return least(iterations, i32(mostRows));
  }
  Value iterations = arith::MaxSIOp::create(b, bound, i64(0));
  iterations = least(iterations, i64(mostRows));
  return arith::TruncIOp::create(b, b.getI32Type(), iterations);
}

Value Emitter::ownIterations(Operation *loop, Value pred, const IRMapping &at) {
  Value bound = at.lookupOrDefault(cast<scf::ForOp>(loop).getUpperBound());
  return where(pred, iterationsUpTo(bound));
}

bool Emitter::areSame(Operation *op, Value pred) {
  Value bound = cast<scf::ForOp>(op).getUpperBound();
  Region &range = *shape.body()->getParent();
  bool same = !range.isAncestor(bound.getParentRegion()) ||
              matchPattern(bound, m_Constant());
  // Where lanes branch, perhaps none of them comes here.
  bool all = !pred || pred == active;
  return same && all;
}

Value Emitter::maxTripCount(Operation *op, Value pred, Value own) {
  Value bound = cast<scf::ForOp>(op).getUpperBound();
  return areSame(op, pred) ? iterationsUpTo(map.lookupOrDefault(bound))
                           : warpMax(own);
}

void Emitter::innerLoop(Operation *op, Value pred, IRMapping &at,
                        Place &place) {
  LoopState loop(shape, op);
  Values inits = mapped(loop.inits(), at);
  Outcome out;
  if (!loop.isCounted()) {
    out = runOpen(loop, pred, inits, at, place);
  } else {
    Value own = ownIterations(op, pred, at);
    Value end = own;
    if (place.counts() || !shape.level(op).isLeaf())
      end = maxTripCount(op, pred, own);
    out = run(loop, {i32(0), end, own}, inits, at, place);
    if (place.keep == Keep::Size && shape.level(op).isLeaf())
      out.state = inits; // no number of rows follows from it
  }
  at.map(op->getResults(), out.state);
  place.row = out.row;
}

} // namespace costate::conversion
