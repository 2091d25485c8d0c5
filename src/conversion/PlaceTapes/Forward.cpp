/// Turns of the forward sweep.

#include "conversion/PlaceTapes/Rows.h"
#include "conversion/PlaceTapes/Walk.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace costate::conversion {

static TypeRange typesOf(ValueRange values) { return TypeRange(values); }

Values Emitter::turn(const LoopState &loop, ValueRange state, Value k,
                     Value pred, IRMapping at, Place &place) {
  at.map(loop.arguments(), state);
  Block *body;
  if (auto counted = dyn_cast<scf::ForOp>(loop.op())) {
    body = counted.getBody();
    at.map(counted.getInductionVar(), k);
  } else {
    auto open = cast<scf::WhileOp>(loop.op());
    body = open.getAfterBody();
    SmallVector<Operation *> ops;
    for (Operation &op : open.getBeforeBody()->without_terminator())
      ops.push_back(&op);
    straight(ops, pred, at, {Keep::Nothing, {}, {}});
    at.map(body->getArguments(), mapped(open.getConditionOp().getArgs(), at));
  }
  ForwardWalk walk(*this, shape.level(loop.op()), at, place, false);
  walk.walk(body->begin(), body->getTerminator()->getIterator(), pred);
  place.row = walk.end();
  return mapped(loop.yields(), at);
}

Values Emitter::results(const LoopState &loop, ValueRange state, Value pred,
                        IRMapping at) {
  auto open = dyn_cast<scf::WhileOp>(loop.op());
  if (!open)
    return Values(state);
  at.map(loop.arguments(), state);
  SmallVector<Operation *> ops;
  for (Operation &op : open.getBeforeBody()->without_terminator())
    ops.push_back(&op);
  straight(ops, pred, at, {Keep::Nothing, {}, {}});
  return mapped(open.getConditionOp().getArgs(), at);
}

Outcome Emitter::run(const LoopState &loop, const Turns &turns,
                     ValueRange state, const IRMapping &at,
                     const Place &place) {
  return shape.level(loop.op()).isLeaf()
             ? runLeaf(loop, turns, state, at, place)
             : runNest(loop, turns, state, at, place);
}

/// Each lane runs its own turns.
Outcome Emitter::runLeaf(const LoopState &loop, const Turns &turns,
                         ValueRange state, const IRMapping &at,
                         const Place &place) {
  int64_t rows = shape.level(loop.op()).rows();
  Outcome out;
  if (place.keep != Keep::Size) {
    // Counted from 0, as the back end unrolls loops.
    Value end = most(least(turns.end, turns.own), turns.first);
    Value count = sub(end, turns.first);
    out.state = this->loop(i64(0), count, state, [&](Value j, ValueRange s) {
      Place here = place;
      if (place.writes())
        here.row = add(place.row, times(j, rows));
      return turn(loop, s, add(turns.first, j), {}, at, here);
    });
  }
  if (place.counts()) {
    out.row = add(place.row, times(sub(turns.end, turns.first), rows));
    out.unit = i64(rows);
  }
  return out;
}

/// All lanes run the turns of the one that has most: they meet in them.
Outcome Emitter::runNest(const LoopState &loop, const Turns &turns,
                         ValueRange state, const IRMapping &at,
                         const Place &place) {
  Values inits(state);
  if (place.counts()) {
    inits.push_back(place.row);
    inits.push_back(i64(1));
  }
  Values ends =
      this->loop(turns.first, turns.end, inits, [&](Value k, ValueRange args) {
        ValueRange s = args.take_front(state.size());
        Value own = less(k, turns.own);
        Place here = place.counts() ? place.at(args[state.size()]) : place;
        Values next = turn(loop, s, k, own, at, here);
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

Outcome Emitter::runOpenLeaf(const LoopState &loop, Value pred,
                             ValueRange state, const IRMapping &at,
                             const Place &place) {
  auto open = cast<scf::WhileOp>(loop.op());
  int64_t rows = shape.level(open).rows();
  SmallVector<Type> types(open.getResultTypes());
  types.push_back(b.getI64Type());
  Values ends = branch(pred, types, [&] {
    Values inits(state);
    inits.push_back(i64(0));
    auto before = [&](OpBuilder &, Location, ValueRange args) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(args.back().getParentBlock());
      IRMapping inner = at;
      inner.map(loop.arguments(), args.drop_back());
      for (Operation &op : open.getBeforeBody()->without_terminator())
        clone(&op, inner, {Keep::Nothing, {}, {}});
      Values passed = mapped(open.getConditionOp().getArgs(), inner);
      passed.push_back(args.back());
      Value goesOn =
          inner.lookupOrDefault(open.getConditionOp().getCondition());
      scf::ConditionOp::create(b, goesOn, passed);
    };
    auto after = [&](OpBuilder &, Location, ValueRange args) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(args.back().getParentBlock());
      IRMapping inner = at;
      inner.map(open.getAfterArguments(), args.drop_back());
      Place here = place;
      if (place.writes())
        here.row = add(place.row, times(args.back(), rows));
      ForwardWalk walk(*this, shape.level(open), inner, here, false);
      Block *body = open.getAfterBody();
      walk.walk(body->begin(), body->getTerminator()->getIterator(), {});
      Values next = mapped(loop.yields(), inner);
      next.push_back(add(args.back(), i64(1)));
      scf::YieldOp::create(b, next);
    };
    auto copy = scf::WhileOp::create(b, types, inits, before, after);
    return Values(copy.getResults());
  });
  Outcome out;
  out.turns = ends.pop_back_val();
  out.state = ends;
  if (place.counts()) {
    Value most = warpMax(out.turns);
    out.row = add(place.row, times(most, rows));
    out.unit = i64(rows);
  }
  return out;
}

/// All lanes turn until the last one is done. Carried: the state, the results
/// so far, whether this lane goes on, its turns, the row, the deepest turn.
Outcome Emitter::runOpenNest(const LoopState &loop, Value pred,
                             ValueRange state, const IRMapping &at,
                             const Place &place) {
  auto open = cast<scf::WhileOp>(loop.op());
  unsigned args = state.size(), passed = open.getNumResults();
  Values inits(state);
  for (Type type : open.getResultTypes())
    inits.push_back(zeroOf(type));
  inits.push_back(
      pred ? pred
           : arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult());
  inits.push_back(i64(0));
  inits.push_back(place.counts() ? place.row : i64(0));
  inits.push_back(i64(1));
  auto before = [&](OpBuilder &, Location, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(carried.back().getParentBlock());
    Value goesOn = carried[args + passed];
    SmallVector<Type> types(open.getResultTypes());
    types.push_back(b.getI1Type());
    Values now = branch(goesOn, types, [&] {
      IRMapping inner = at;
      inner.map(loop.arguments(), carried.take_front(args));
      for (Operation &op : open.getBeforeBody()->without_terminator())
        clone(&op, inner, {Keep::Nothing, {}, {}});
      Values values = mapped(open.getConditionOp().getArgs(), inner);
      values.push_back(
          inner.lookupOrDefault(open.getConditionOp().getCondition()));
      return values;
    });
    Values next(carried);
    for (unsigned k = 0; k < passed; ++k)
      next[args + k] = select(goesOn, now[k], carried[args + k]);
    next[args + passed] = both(goesOn, now.back());
    Value flag = arith::ExtUIOp::create(b, b.getI64Type(), next[args + passed]);
    Value any = less(i64(0), warpMax(flag));
    scf::ConditionOp::create(b, any, next);
  };
  auto after = [&](OpBuilder &, Location, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(carried.back().getParentBlock());
    Value own = carried[args + passed];
    IRMapping inner = at;
    inner.map(open.getAfterArguments(), carried.slice(args, passed));
    Value start = carried[args + passed + 2];
    Place here = place.counts() ? place.at(start) : place;
    ForwardWalk walk(*this, shape.level(open), inner, here, false);
    Block *body = open.getAfterBody();
    walk.walk(body->begin(), body->getTerminator()->getIterator(), own);
    Values next(carried);
    for (auto [k, value] : llvm::enumerate(mapped(loop.yields(), inner)))
      next[k] = select(own, value, carried[k]);
    Value taken = arith::ExtUIOp::create(b, b.getI64Type(), own);
    next[args + passed + 1] = add(carried[args + passed + 1], taken);
    if (place.counts()) {
      next[args + passed + 2] = walk.end();
      next.back() = most(carried.back(), sub(next[args + passed + 2], start));
    }
    scf::YieldOp::create(b, next);
  };
  SmallVector<Type> types = llvm::to_vector(typesOf(inits));
  auto copy = scf::WhileOp::create(b, types, inits, before, after);
  Outcome out;
  Values ends(copy.getResults());
  out.state.assign(ends.begin() + args, ends.begin() + args + passed);
  out.turns = ends[args + passed + 1];
  if (place.counts()) {
    out.row = ends[args + passed + 2];
    out.unit = ends.back();
  }
  return out;
}

//===-- Loops in a level --------------------------------------------------===//

Value Emitter::atLeastZero(Value bound) {
  return arith::MaxSIOp::create(b, bound, i64(0));
}

Value Emitter::ownTurns(Operation *loop, Value pred, const IRMapping &at) {
  Value bound = at.lookupOrDefault(cast<scf::ForOp>(loop).getUpperBound());
  return where(pred, atLeastZero(bound));
}

Value Emitter::mostTurns(Operation *op, Value pred, Value own) {
  Value bound = cast<scf::ForOp>(op).getUpperBound();
  Region &range = *shape.body()->getParent();
  bool same = !range.isAncestor(bound.getParentRegion()) ||
              matchPattern(bound, m_Constant());
  // Where lanes branch, perhaps none of them comes here.
  bool all = !pred || pred == active;
  return same && all ? atLeastZero(map.lookupOrDefault(bound)) : warpMax(own);
}

void Emitter::innerLoop(Operation *op, Value pred, IRMapping &at,
                        Place &place) {
  LoopState loop(shape, op);
  Values inits = mapped(loop.inits(), at);
  Outcome out;
  if (!loop.isCounted()) {
    out = runOpen(loop, pred, inits, at, place);
  } else {
    Value own = ownTurns(op, pred, at);
    Value end = own;
    if (place.counts() || !shape.level(op).isLeaf())
      end = mostTurns(op, pred, own);
    out = run(loop, {i64(0), end, own}, inits, at, place);
    if (place.keep == Keep::Size && shape.level(op).isLeaf())
      out.state = inits; // no number of rows follows from it
  }
  at.map(op->getResults(), out.state);
  place.row = out.row;
}

/// A loop of the iteration: keeps what fits, and leaves checkpoints of the
/// rest.
void Emitter::outerLoop(Operation *op, Value pred) {
  LoopState state(shape, op);
  bool leaf = shape.level(op).isLeaf();
  int64_t words = state.checkpointRows();
  OpenLoop loop{state, mapped(state.inits(), map), row, {}, {}, {}, {}, {}, {},
                {}};
  Value left = sub(tape::RowsOp::create(b, b.getI64Type()), row), share = left;
  if (loopsLeft > 1)
    share = arith::DivUIOp::create(b, left, i64(loopsLeft));
  bool isLast = --loopsLeft == 0;
  Value own, most, rows, unit;
  Outcome whole;
  if (state.isSized()) {
    own = ownTurns(op, pred, map);
    most = mostTurns(op, pred, own);
    Outcome count =
        run(state, {i64(0), most, own}, loop.inits, map, {Keep::Size, row, {}});
    rows = sub(count.row, row);
    unit = count.unit;
  } else {
    Place guarded{Keep::Guarded, row, add(row, left)};
    if (state.isCounted()) {
      own = ownTurns(op, pred, map);
      most = mostTurns(op, pred, own);
      whole = run(state, {i64(0), most, own}, loop.inits, map, guarded);
    } else {
      whole = runOpen(state, pred, loop.inits, map, guarded);
      own = whole.turns;
      most = warpMax(own);
    }
    rows = sub(whole.row, row);
    unit = whole.unit;
  }
  Value wordsValue = i64(words);
  Type i64Type = b.getI64Type();
  Value few = tape::FewestOp::create(b, i64Type, most, unit, wordsValue);
  few = least(few, rows);
  if (!isLast) {
    Value frugal = tape::FrugalOp::create(b, b.getI1Type());
    Value ample = tape::AmpleOp::create(b, b.getI1Type());
    share = select(ample, left, share);
    share = select(frugal, least(few, left), share);
  }
  Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, rows, share);
  Values plan = branch(
      all, {i64Type, i64Type}, [&] { return Values{most, i64(1)}; },
      [&] {
        Value kept =
            tape::KeptOp::create(b, i64Type, most, unit, wordsValue, share);
        Value rest = sub(most, kept);
        Value segment =
            tape::SegmentOp::create(b, i64Type, rest, unit, wordsValue);
        return Values{kept, segment};
      });
  Value never = i64(-1);
  Value fit =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, plan[0], never);
  // What does not fit runs to its end all the same, in one segment: what is
  // behind it shall be known as well.
  loop.most = most;
  loop.kept = where(fit, plan[0]);
  loop.segment = select(fit, plan[1], this->most(most, i64(1)));
  need = add(need, rows);
  fewest = add(fewest, few);
  fits = both(fits, fit);

  Outcome kept;
  if (state.isSized()) {
    kept = run(state, {i64(0), loop.kept, own}, loop.inits, map,
               {Keep::Rows, row, {}});
    loop.keptEnd = kept.row;
  } else {
    // The kept rows are written; what is missing is the state behind them.
    Value again = where(negated(all), loop.kept);
    kept = run(state, {i64(0), again, own}, loop.inits, map,
               {leaf ? Keep::Nothing : Keep::Count, row, {}});
    Value end = leaf ? add(row, times(loop.kept, shape.level(op).rows()))
                     : select(all, add(row, rows), kept.row);
    loop.keptEnd = end;
  }
  Value rest = sub(loop.most, loop.kept);
  Value more = sub(add(rest, loop.segment), i64(1));
  loop.segments = arith::DivUIOp::create(b, more, loop.segment);
  loop.checkpoints = loop.keptEnd;
  SmallVector<unsigned> saved;
  for (unsigned k = 0; k < loop.inits.size(); ++k)
    if (state.isInCheckpoint(k))
      saved.push_back(k);
  Values last =
      this->loop(i64(0), loop.segments, kept.state, [&](Value g, ValueRange s) {
        Value from = add(loop.kept, arith::MulIOp::create(b, g, loop.segment));
        Value to = least(add(from, loop.segment), loop.most);
        Values values;
        for (unsigned k : saved)
          values.push_back(s[k]);
        if (!values.empty())
          branch(fit, {}, [&] {
            Value at = add(loop.checkpoints, times(g, words));
            tape::WriteOp::create(b, values, at);
            return Values();
          });
        return run(state, {from, to, own}, s, map, {Keep::Nothing, {}, {}})
            .state;
      });
  loop.segments = where(fit, loop.segments);
  loop.free = add(loop.checkpoints, times(loop.segments, words));
  row = loop.free;
  Values ends = state.isSized() ? results(state, last, pred, map) : whole.state;
  map.map(op->getResults(), ends);
  open.try_emplace(op, std::move(loop));
}

} // namespace costate::conversion
