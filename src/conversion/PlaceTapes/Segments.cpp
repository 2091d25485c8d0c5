/// Loops of the work item itself: first iterations that are kept, and segments
/// of the rest, run again from checkpoints when they are undone.

#include "conversion/PlaceTapes/Emitter.h"

using namespace mlir;

namespace costate::conversion {

//===-- Forward -----------------------------------------------------------===//

/// The need of all iterations. Where no slice tells it they run, and write what
/// fits into `left` rows.
Outcome Emitter::count(OpenLoop &loop, Value pred, Value left) {
  Operation *op = loop.state.op();
  Place place{Keep::Size, row, {}};
  if (!loop.state.isSized())
    place = {Keep::Guarded, row, add(row, left)};
  if (!loop.state.isCounted()) {
    Outcome whole = runOpen(loop.state, pred, loop.inits, map, place);
    loop.own = whole.iterations;
    loop.most = warpMax(loop.own);
    return whole;
  }
  loop.same = areSame(op, pred);
  loop.own = ownIterations(op, pred, map);
  // What follows from the iterations shall not wait in registers.
  loop.most = warpMax(loop.own);
  return run(loop.state, {i32(0), loop.most, loop.own}, loop.inits, map, place);
}

/// Of `left` rows, those that a loop may take that can do with `few`; the last
/// one takes all.
Value Emitter::share(Value left, Value few) {
  if (loopsLeft == 1)
    return left;
  Value part = arith::DivUIOp::create(b, left, i32(loopsLeft));
  Value lowMemory = tape::LowMemoryOp::create(b, b.getI1Type());
  Value sufficient = tape::SufficientOp::create(b, b.getI1Type());
  part = select(sufficient, left, part);
  return select(lowMemory, least(few, left), part);
}

/// Decides which iterations are kept and how the others are cut; what does not
/// fit is one segment. Returns whether all are kept.
Value Emitter::plan(OpenLoop &loop, const Outcome &whole, Value left) {
  Type i32Type = b.getI32Type();
  Value words = i32(loop.state.checkpointRows()), unit = whole.unit;
  Value rows = sub(whole.row, row);
  Value few = tape::MinRowsOp::create(b, i32Type, loop.most, unit, words);
  few = least(few, rows);
  Value mine = share(left, few), never = i32(-1);
  Value all = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, rows, mine);
  auto fits = [&](Value kept) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, kept, never);
  };
  Values plan = branch(
      all, {i32Type, i32Type, i32Type},
      [&] { return Values{loop.most, loop.most, i32(0)}; },
      [&] {
        Value kept =
            tape::KeptOp::create(b, i32Type, loop.most, unit, words, mine);
        Value fit = fits(kept), rest = sub(loop.most, where(fit, kept));
        Value segment = tape::SegmentOp::create(b, i32Type, rest, unit, words);
        segment = select(fit, segment, rest);
        Value more = sub(add(rest, segment), i32(1));
        Value segments = arith::DivUIOp::create(b, more, segment);
        return Values{kept, segment, segments};
      });
  loop.fit = fits(plan[0]);
  loop.kept = where(loop.fit, plan[0]);
  loop.segment = plan[1];
  loop.segments = plan[2];
  if (!shape.level(loop.state.op()).isLeaf())
    planInside(loop, left);
  need = addUpTo(need, rows);
  minRows = addUpTo(minRows, few);
  this->fits = both(this->fits, loop.fit);
  return all;
}

/// The state after the iterations that are kept, which counting has written.
Values Emitter::behindKept(OpenLoop &loop, const Outcome &whole, Value all) {
  const LoopState &state = loop.state;
  const TapeLevel &level = shape.level(state.op());
  if (level.isLeaf()) {
    loop.keptEnd = add(row, times(loop.kept, level.rows()));
    if (auto fields = state.recorded(shape))
      return nextRecorded(loop, *fields, all);
  }
  Value again = where(negated(all), loop.kept);
  Outcome kept = run(state, {i32(0), again, loop.own}, loop.inits, map,
                     {level.isLeaf() ? Keep::Nothing : Keep::Count, row, {}});
  if (!level.isLeaf())
    loop.keptEnd = select(all, whole.row, kept.row);
  return kept.state;
}

/// The same, where the first iteration after them has written it as well.
Values Emitter::nextRecorded(const OpenLoop &loop, ArrayRef<RecordField> fields,
                             Value all) {
  SmallVector<Type> types = loop.state.checkpoint();
  Value isThere = both(loop.fit, negated(all));
  Values saved = branch(isThere, types, [&] {
    Values values;
    for (auto [record, number] : fields) {
      Value at = add(loop.keptEnd, i32(shape.rowOf(record)));
      auto read = tape::ReadOp::create(b, shape.typesOf(record), at);
      values.push_back(read.getResult(number));
    }
    return values;
  });
  return stateAt(loop, saved, loop.kept);
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

/// One of the pieces below: iterations from `from` on.
Outcome Emitter::runPiece(const OpenLoop &loop, const Piece &piece,
                          const Iterations &iterations, ValueRange state) {
  int64_t words = loop.state.checkpointRows();
  auto stored = [&](Value from) {
    return run(loop.state, iterations, state, map, {Keep::Rows, from, {}});
  };
  auto passed = [&] {
    Value number = sub(piece.number, i32(1));
    writeState(loop, add(piece.keptEnd, times(number, words)), state);
    return run(loop.state, iterations, state, map, {Keep::Nothing, {}, {}});
  };
  if (!piece.isStored)
    return passed();
  bool isLeaf = shape.level(loop.state.op()).isLeaf();
  SmallVector<Type> types = llvm::to_vector(TypeRange(state));
  if (!isLeaf)
    types.push_back(b.getI32Type());
  auto values = [&](Outcome out, Value end) {
    if (!isLeaf)
      out.state.push_back(end);
    return out.state;
  };
  Value free = add(piece.keptEnd, times(loop.segments, words));
  Values ends = branch(
      piece.isStored, types,
      [&] {
        Outcome out = stored(
            piece.isKept ? select(piece.isKept, loop.first, free) : free);
        return values(out, out.row);
      },
      [&] { return values(passed(), piece.keptEnd); });
  Outcome out;
  if (!isLeaf)
    out.row = ends.pop_back_val();
  out.state = ends;
  return out;
}

/// Whether the last segment is written when it is first run.
Value Emitter::storesLast(const OpenLoop &loop) {
  return loop.inside ? both(loop.fit, negated(loop.inside)) : loop.fit;
}

/// Whether the forward sweep needs what it results in.
bool Emitter::isUsedOnTheWay(const OpenLoop &loop) const {
  Operation *op = loop.state.op();
  Block *body = shape.body();
  return op->getBlock() != body ||
         llvm::any_of(op->getUsers(), [&](Operation *user) {
           Operation *at = body->findAncestorOpInBlock(*user);
           return !at || at->isBeforeInBlock(shape.pivot);
         });
}

/// Runs all iterations that have not been run, in pieces: those that are kept
/// are piece 0, and stored. So is the last piece of the last loop, which is
/// undone first. In front of each other one stands a checkpoint. Returns the
/// state after them.
Values Emitter::runPieces(OpenLoop &loop, ValueRange state) {
  bool isSized = loop.state.isSized();
  bool isLeaf = shape.level(loop.state.op()).isLeaf();
  // Planning has written where checkpoints are to stand.
  if (!isSized || loop.inside)
    tape::FenceOp::create(b);
  Value none = i32(0), one = i32(1);
  Value from = isSized ? none : loop.kept, start = isSized ? none : one;
  Value keptEnd = loop.keptEnd;
  if (isSized && isLeaf)
    keptEnd = add(row, times(loop.kept, shape.level(loop.state.op()).rows()));
  else if (isSized)
    keptEnd = row;
  // After the state: the first iteration; for nests the rows after the kept
  // iterations and after the last piece.
  unsigned values = state.size();
  Values inits(state);
  inits.push_back(from);
  if (!isLeaf)
    inits.append({keptEnd, keptEnd});
  // What does not fit need not run, nor run again.
  bool mustRun = isSized && (!loop.storesLast || isUsedOnTheWay(loop));
  Value end =
      add(mustRun ? loop.segments : where(loop.fit, loop.segments), one);
  Values ends = this->loop(start, end, inits, [&](Value p, ValueRange args) {
    auto equal = [&](Value a, Value c) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, c);
    };
    Piece piece{p, {}, {}, isLeaf ? keptEnd : args[values + 1]};
    Value from = args[values], size = loop.segment;
    if (isSized) {
      piece.isKept = piece.isStored = equal(p, none);
      size = select(piece.isKept, loop.kept, size);
    }
    if (loop.storesLast) {
      Value isLast = both(storesLast(loop), equal(p, loop.segments));
      piece.isStored =
          isSized ? select(piece.isKept, piece.isKept, isLast) : isLast;
    }
    Value to = least(add(from, size), loop.most);
    Outcome out =
        runPiece(loop, piece, {from, to, loop.own}, args.take_front(values));
    Values next = out.state;
    next.push_back(to);
    if (!isLeaf) {
      Value after = out.row ? out.row : piece.keptEnd;
      next.push_back(isSized ? select(piece.isKept, after, piece.keptEnd)
                             : piece.keptEnd);
      next.push_back(after);
    }
    return next;
  });
  loop.keptEnd = isLeaf ? keptEnd : ends[values + 1];
  loop.lastEnd = isLeaf ? Value() : ends[values + 2];
  loop.segments = where(loop.fit, loop.segments);
  int64_t words = loop.state.checkpointRows();
  loop.free = add(loop.keptEnd, times(loop.segments, words));
  ends.truncate(values);
  return ends;
}

/// A loop of the work item: keeps what fits, and leaves checkpoints of the
/// rest.
void Emitter::outerLoop(Operation *op, Value pred) {
  OpenLoop loop{LoopState(shape, op)};
  loop.inits = mapped(loop.state.inits(), map);
  loop.first = row;
  Value left = sub(tape::RowsOp::create(b, b.getI32Type()), row);
  Outcome whole = count(loop, pred, left);
  Value all = plan(loop, whole, left);
  loop.storesLast = --loopsLeft == 0;
  bool isSized = loop.state.isSized();
  Values last =
      runPieces(loop, isSized ? loop.inits : behindKept(loop, whole, all));
  row = loop.free;
  if (isSized)
    whole.state = results(loop.state, last, pred, map);
  map.map(op->getResults(), whole.state);
  open.try_emplace(op, std::move(loop));
}

//===-- Reverse -----------------------------------------------------------===//

/// The state in front of iteration `iteration`, of which a checkpoint has
/// `saved`.
Values Emitter::stateAt(const OpenLoop &loop, ValueRange saved,
                        Value iteration) {
  Values state;
  unsigned next = 0;
  for (auto [k, init] : llvm::enumerate(loop.inits)) {
    if (loop.state.isInCheckpoint(k)) {
      state.push_back(saved[next++]);
    } else if (auto gain = loop.state.gain(k)) {
      Value sum = arith::MulIOp::create(b, index(iteration), i64(*gain));
      state.push_back(arith::AddIOp::create(b, init, sum));
    } else {
      state.push_back(init);
    }
  }
  return state;
}

/// The same, from the checkpoint at row `at`.
Values Emitter::restore(const OpenLoop &loop, Value at, Value iteration) {
  SmallVector<Type> types = loop.state.checkpoint();
  Values saved;
  if (!types.empty())
    saved = Values(tape::ReadOp::create(b, types, at).getResults());
  return stateAt(loop, saved, iteration);
}

/// Writes the iterations of a segment unless they are there; nests: returns the
/// row after them.
Value Emitter::runAgain(const OpenLoop &loop, const Iterations &iterations,
                        Value isKept, Value isStored, Arm state) {
  bool isLeaf = shape.level(loop.state.op()).isLeaf();
  SmallVector<Type> types;
  if (!isLeaf)
    types.push_back(b.getI32Type());
  Values end = branch(
      isStored, types,
      [&]() -> Values {
        if (isLeaf)
          return {};
        return {loop.storesLast ? select(isKept, loop.keptEnd, loop.lastEnd)
                                : loop.keptEnd};
      },
      [&]() -> Values {
        Outcome again = run(loop.state, iterations, state(), map,
                            {Keep::Rows, loop.free, {}});
        if (isLeaf)
          return {};
        return {again.row};
      });
  return isLeaf ? Value() : end[0];
}

/// Segments, the last one first, are run again and undone; then the iterations
/// that were kept. The last one may still be there.
void Emitter::undoOuter(scf::ForOp reversed, Value pred) {
  OpenLoop &loop = open.find(shape.forwardOf(reversed))->second;
  const TapeLevel &level = shape.level(loop.state.op());
  bool isLeaf = level.isLeaf();
  Value own = ownIterations(reversed, pred, map);
  Value one = i32(1), none = i32(0), rounds = add(loop.segments, one);
  auto equal = [&](Value a, Value c) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, c);
  };
  // After the adjoints: the first iteration of the piece, and the one after it.
  Values inits = mapped(reversed.getInitArgs(), map);
  unsigned values = inits.size();
  Value before = sub(loop.segments, one);
  Value last = add(loop.kept, arith::MulIOp::create(b, before, loop.segment));
  Value isWhole = equal(loop.segments, none);
  inits.push_back(select(isWhole, none, last));
  inits.push_back(select(isWhole, loop.kept, loop.most));
  Values ends = this->loop(none, rounds, inits, [&](Value j, ValueRange args) {
    tape::FenceOp::create(b);
    ValueRange carried = args.take_front(values);
    Value isKept = equal(j, loop.segments);
    Iterations iterations{args[values], args[values + 1], own};
    Value number = sub(sub(loop.segments, one), j);
    auto restored = [&] {
      Value at = add(loop.keptEnd, times(number, loop.state.checkpointRows()));
      return restore(loop, at, iterations.first);
    };
    auto undo = [&] {
      Value row = select(isKept, loop.first, loop.free), isStored = isKept;
      if (loop.storesLast)
        isStored = select(isKept, isKept, equal(j, none));
      Value end = runAgain(loop, iterations, isKept, isStored, restored);
      return isLeaf ? undoLeaf(reversed, iterations, row, carried, map,
                               loop.same && pred == running)
                    : undoNest(reversed, iterations, end, carried, map);
    };
    auto undoDeep = [&] {
      return undoInside(loop, reversed, iterations, restored(), carried);
    };
    Values next = isLeaf ? undo()
                         : branch(both(loop.inside, negated(isKept)),
                                  TypeRange(carried), undoDeep, undo);
    Value further = sub(iterations.first, loop.segment);
    next.push_back(select(equal(number, none), none, further));
    next.push_back(iterations.first);
    return next;
  });
  ends.truncate(values);
  map.map(reversed.getResults(), ends);
}

} // namespace costate::conversion
