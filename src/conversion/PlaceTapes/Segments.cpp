/// Loops of the iteration itself: first turns that are kept, and segments of
/// the rest, run again from checkpoints when they are undone.

#include "conversion/PlaceTapes/Emitter.h"

using namespace mlir;

namespace costate::conversion {

//===-- Forward -----------------------------------------------------------===//

/// The need of all turns. Where no slice tells it they run, and write what
/// fits into `left` rows.
Outcome Emitter::count(OpenLoop &loop, Value pred, Value left) {
  Operation *op = loop.state.op();
  Place place{Keep::Size, row, {}};
  if (!loop.state.isSized())
    place = {Keep::Guarded, row, add(row, left)};
  if (!loop.state.isCounted()) {
    Outcome whole = runOpen(loop.state, pred, loop.inits, map, place);
    loop.own = whole.turns;
    loop.most = warpMax(loop.own);
    return whole;
  }
  loop.own = ownTurns(op, pred, map);
  loop.most = mostTurns(op, pred, loop.own);
  return run(loop.state, {i64(0), loop.most, loop.own}, loop.inits, map, place);
}

/// Of `left` rows, those that a loop may take that can do with `few`; the last
/// one takes all.
Value Emitter::share(Value left, Value few) {
  if (loopsLeft == 1)
    return left;
  Value part = arith::DivUIOp::create(b, left, i64(loopsLeft));
  Value frugal = tape::FrugalOp::create(b, b.getI1Type());
  Value ample = tape::AmpleOp::create(b, b.getI1Type());
  part = select(ample, left, part);
  return select(frugal, least(few, left), part);
}

/// Decides which turns are kept and how the others are cut; what does not fit
/// runs to its end all the same, in one segment: what is behind it shall be
/// known as well. Returns whether all are kept.
Value Emitter::plan(OpenLoop &loop, const Outcome &whole, Value left) {
  Type i64Type = b.getI64Type();
  Value words = i64(loop.state.checkpointRows()), unit = whole.unit;
  Value rows = sub(whole.row, row);
  Value few = tape::FewestOp::create(b, i64Type, loop.most, unit, words);
  few = least(few, rows);
  Value mine = share(left, few);
  Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, rows, mine);
  Values plan = branch(
      all, {i64Type, i64Type}, [&] { return Values{loop.most, i64(1)}; },
      [&] {
        Value kept =
            tape::KeptOp::create(b, i64Type, loop.most, unit, words, mine);
        Value rest = sub(loop.most, kept);
        Value segment = tape::SegmentOp::create(b, i64Type, rest, unit, words);
        return Values{kept, segment};
      });
  loop.fit =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, plan[0], i64(-1));
  loop.kept = where(loop.fit, plan[0]);
  loop.segment = select(loop.fit, plan[1], most(loop.most, i64(1)));
  if (!shape.level(loop.state.op()).isLeaf())
    planInside(loop, left);
  need = add(need, rows);
  fewest = add(fewest, few);
  fits = both(fits, loop.fit);
  return all;
}

/// Writes the turns that are kept, unless counting has; returns the state
/// behind them.
Values Emitter::keep(OpenLoop &loop, const Outcome &whole, Value all) {
  const LoopState &state = loop.state;
  if (state.isSized()) {
    Outcome kept = run(state, {i64(0), loop.kept, loop.own}, loop.inits, map,
                       {Keep::Rows, row, {}});
    loop.keptEnd = kept.row;
    return kept.state;
  }
  const TapeLevel &level = shape.level(state.op());
  Value again = where(negated(all), loop.kept);
  Outcome kept = run(state, {i64(0), again, loop.own}, loop.inits, map,
                     {level.isLeaf() ? Keep::Nothing : Keep::Count, row, {}});
  loop.keptEnd = level.isLeaf() ? add(row, times(loop.kept, level.rows()))
                                : select(all, whole.row, kept.row);
  return kept.state;
}

void Emitter::writeState(const OpenLoop &loop, Value at, ValueRange state) {
  Values saved;
  for (unsigned k = 0; k < state.size(); ++k)
    if (loop.state.isInCheckpoint(k))
      saved.push_back(state[k]);
  if (saved.empty())
    return;
  branch(loop.fit, {}, [&] {
    tape::WriteOp::create(b, saved, at);
    return Values();
  });
}

/// Runs the turns behind the kept ones; returns the state behind them.
Values Emitter::cut(OpenLoop &loop, ValueRange state) {
  int64_t words = loop.state.checkpointRows();
  // Planning has written where checkpoints are to stand.
  if (!loop.state.isSized() || loop.inside)
    tape::FenceOp::create(b);
  Value rest = sub(loop.most, loop.kept);
  Value more = sub(add(rest, loop.segment), i64(1));
  loop.segments = arith::DivUIOp::create(b, more, loop.segment);
  Values last =
      this->loop(i64(0), loop.segments, state, [&](Value g, ValueRange s) {
        Value from = add(loop.kept, arith::MulIOp::create(b, g, loop.segment));
        Value to = least(add(from, loop.segment), loop.most);
        writeState(loop, add(loop.keptEnd, times(g, words)), s);
        return run(loop.state, {from, to, loop.own}, s, map,
                   {Keep::Nothing, {}, {}})
            .state;
      });
  loop.segments = where(loop.fit, loop.segments);
  loop.free = add(loop.keptEnd, times(loop.segments, words));
  return last;
}

/// A loop of the iteration: keeps what fits, and leaves checkpoints of the
/// rest.
void Emitter::outerLoop(Operation *op, Value pred) {
  OpenLoop loop{LoopState(shape, op)};
  loop.inits = mapped(loop.state.inits(), map);
  loop.first = row;
  Value left = sub(tape::RowsOp::create(b, b.getI64Type()), row);
  Outcome whole = count(loop, pred, left);
  Value all = plan(loop, whole, left);
  --loopsLeft;
  Values last = cut(loop, keep(loop, whole, all));
  row = loop.free;
  if (loop.state.isSized())
    whole.state = results(loop.state, last, pred, map);
  map.map(op->getResults(), whole.state);
  open.try_emplace(op, std::move(loop));
}

//===-- Reverse -----------------------------------------------------------===//

/// The state in front of turn `from`, from the checkpoint at row `at`.
Values Emitter::restore(const OpenLoop &loop, Value at, Value from) {
  SmallVector<Type> types = loop.state.checkpoint();
  Values read;
  if (!types.empty())
    read = Values(tape::ReadOp::create(b, types, at).getResults());
  Values state;
  unsigned next = 0;
  for (auto [k, init] : llvm::enumerate(loop.inits)) {
    if (loop.state.isInCheckpoint(k))
      state.push_back(read[next++]);
    else if (auto gain = loop.state.gain(k))
      state.push_back(add(init, times(from, *gain)));
    else
      state.push_back(init);
  }
  return state;
}

/// Segments, the last one first, are run again and undone; then the turns that
/// were kept.
void Emitter::undoOuter(scf::ForOp reversed, Value pred) {
  OpenLoop &loop = open.find(shape.forwardOf(reversed))->second;
  bool leaf = shape.level(loop.state.op()).isLeaf();
  int64_t words = loop.state.checkpointRows();
  Value own = ownTurns(reversed, pred, map);
  Values inits = mapped(reversed.getInitArgs(), map);
  Value one = i64(1), rounds = add(loop.segments, one);
  Value newest = sub(loop.segments, one);
  Values ends =
      this->loop(i64(0), rounds, inits, [&](Value j, ValueRange carried) {
        tape::FenceOp::create(b);
        Value isKept = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, j,
                                             loop.segments);
        Value number = sub(newest, j);
        Value start =
            add(loop.kept, arith::MulIOp::create(b, number, loop.segment));
        Value stop = least(add(start, loop.segment), loop.most);
        auto restored = [&] {
          return restore(loop, add(loop.keptEnd, times(number, words)), start);
        };
        auto undo = [&] {
          Turns turns{select(isKept, i64(0), start),
                      select(isKept, loop.kept, stop), own};
          Value row = select(isKept, loop.first, loop.free);
          Values behind = branch(
              isKept, {b.getI64Type()}, [&] { return Values{loop.keptEnd}; },
              [&] {
                Outcome again = run(loop.state, {start, stop, own}, restored(),
                                    map, {Keep::Rows, loop.free, {}});
                return Values{again.row};
              });
          return leaf ? undoLeaf(reversed, turns, row, carried, map)
                      : undoNest(reversed, turns, behind[0], carried, map);
        };
        if (leaf)
          return undo();
        Value inside = both(loop.inside, negated(isKept));
        return branch(
            inside, TypeRange(carried),
            [&] {
              return undoInside(loop, reversed, {start, stop, own}, restored(),
                                carried);
            },
            undo);
      });
  map.map(reversed.getResults(), ends);
}

} // namespace costate::conversion
