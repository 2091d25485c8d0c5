#include "conversion/PlaceTapes/Segments.h"

#include "conversion/PlaceTapes/Checkpoints.h"
#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Locals.h"
#include "conversion/PlaceTapes/Plan.h"

using namespace mlir;

namespace costate::conversion {

//===-- After the kept iterations -----------------------------------------===//

/// The state there, where the first iteration after them has recorded it.
static Values nextRecorded(WorkItem &item, const OpenLoop &loop,
                           ArrayRef<RecordField> fields, Value all) {
  RowBuilder &b = item.b;
  SmallVector<Type> types = loop.state.checkpoint();
  Value isThere = b.both(loop.fit, b.negated(all));
  Values saved = b.branch(isThere, types, [&] {
    Values values;
    for (auto [record, number] : fields) {
      Value at = b.add(loop.keptEnd, b.i32(item.shape.rowOf(record)));
      auto read = tape::ReadOp::create(b, item.shape.typesOf(record), at);
      values.push_back(read.getResult(number));
    }
    return values;
  });
  return stateOf(b, loop, saved, loop.kept);
}

/// The state after the iterations that are kept, which counting has written.
static Values afterKept(WorkItem &item, OpenLoop &loop, const Outcome &whole,
                        Value all) {
  RowBuilder &b = item.b;
  const LoopState &state = loop.state;
  const TapeLevel &level = item.shape.level(state.op());
  if (level.isLeaf()) {
    loop.keptEnd = b.add(item.row, b.times(loop.kept, level.rows()));
    if (auto fields = state.recorded(item.shape))
      return nextRecorded(item, loop, *fields, all);
  }
  Value again = b.where(b.negated(all), loop.kept);
  Keep keep = level.isLeaf() ? Keep::Nothing : Keep::Count;
  Outcome kept = run(item, state, {b.i32(0), again, loop.own}, loop.inits,
                     item.map, {keep, item.row, {}});
  if (!level.isLeaf())
    loop.keptEnd = b.select(all, whole.row, kept.row);
  return kept.state;
}

//===-- Pieces ------------------------------------------------------------===//

namespace {

/// Iterations that run together: the kept ones, or a segment.
struct Piece {
  Value number;
  Value isKept, isStored; ///< null: never
  Value keptEnd;          ///< row after the kept iterations
};

/// All iterations that have not been run, in pieces: those that are kept are
/// piece 0, and stored. So is the last piece of the last loop, which is undone
/// first. In front of each other one stands a checkpoint.
class Pieces {
public:
  Pieces(WorkItem &item, OpenLoop &loop)
      : item(item), b(item.b), loop(loop), isSized(loop.state.isSized()),
        isLeaf(item.shape.level(loop.state.op()).isLeaf()),
        words(loop.state.checkpointRows()) {}

  /// Returns the state after them.
  Values run(ValueRange state);

private:
  Value keptEndOfSized();
  Value afterLast();
  Value isStoredLast();
  bool isUsedOnTheWay() const;
  Piece piece(Value number, Value keptEnd);
  Values next(Value number, ValueRange args);
  Outcome run(const Piece &piece, const Iterations &iterations,
              ValueRange state);
  Outcome runPassed(const Piece &piece, const Iterations &iterations,
                    ValueRange state);
  Outcome runStored(const Piece &piece, Value free,
                    const Iterations &iterations, ValueRange state);

  WorkItem &item;
  RowBuilder &b;
  OpenLoop &loop;
  bool isSized, isLeaf;
  int64_t words;            ///< of a checkpoint
  Value none, one, keptEnd; ///< of a leaf
};

} // namespace

/// From a checkpoint on, without records.
Outcome Pieces::runPassed(const Piece &piece, const Iterations &iterations,
                          ValueRange state) {
  Value number = b.sub(piece.number, b.i32(1));
  writeCheckpoint(b, loop, b.add(piece.keptEnd, b.times(number, words)), state);
  return conversion::run(item, loop.state, iterations, state, item.map,
                         {Keep::Nothing, {}, {}});
}

Outcome Pieces::runStored(const Piece &piece, Value free,
                          const Iterations &iterations, ValueRange state) {
  Value from = piece.isKept ? b.select(piece.isKept, loop.first, free) : free;
  return conversion::run(item, loop.state, iterations, state, item.map,
                         {Keep::Rows, from, {}});
}

Outcome Pieces::run(const Piece &piece, const Iterations &iterations,
                    ValueRange state) {
  if (!piece.isStored)
    return runPassed(piece, iterations, state);
  SmallVector<Type> types = llvm::to_vector(TypeRange(state));
  if (!isLeaf)
    types.push_back(b.getI32Type());
  auto values = [&](Outcome out, Value end) {
    if (!isLeaf)
      out.state.push_back(end);
    return out.state;
  };
  Value free = b.add(piece.keptEnd, b.times(loop.segments, words));
  Values ends = b.branch(
      piece.isStored, types,
      [&] {
        Outcome out = runStored(piece, free, iterations, state);
        return values(out, out.row);
      },
      [&] {
        return values(runPassed(piece, iterations, state), piece.keptEnd);
      });
  Outcome out;
  if (!isLeaf)
    out.row = ends.pop_back_val();
  out.state = ends;
  return out;
}

/// Whether the last segment is written when it is first run.
Value Pieces::isStoredLast() {
  return loop.inside ? b.both(loop.fit, b.negated(loop.inside)) : loop.fit;
}

/// Whether the forward sweep needs what it results in.
bool Pieces::isUsedOnTheWay() const {
  Operation *op = loop.state.op();
  Block *body = item.shape.body();
  return op->getBlock() != body || loop.state.writesLocals() ||
         llvm::any_of(op->getUsers(), [&](Operation *user) {
           Operation *at = body->findAncestorOpInBlock(*user);
           return !at || at->isBeforeInBlock(item.shape.pivot);
         });
}

Value Pieces::keptEndOfSized() {
  if (!isLeaf)
    return item.row;
  int64_t rows = item.shape.level(loop.state.op()).rows();
  return b.add(item.row, b.times(loop.kept, rows));
}

/// The number after the last piece. What does not fit need not run, nor run
/// again.
Value Pieces::afterLast() {
  bool mustRun = isSized && (!loop.storesLast || isUsedOnTheWay());
  Value segments = mustRun ? loop.segments : b.where(loop.fit, loop.segments);
  return b.add(segments, one);
}

Piece Pieces::piece(Value number, Value keptEnd) {
  Piece piece{number, {}, {}, keptEnd};
  if (isSized)
    piece.isKept = piece.isStored = b.equal(number, none);
  return piece;
}

/// `args`: the state; after it the first iteration; for nests the rows after
/// the kept iterations and after the last piece.
Values Pieces::next(Value number, ValueRange args) {
  unsigned values = loop.inits.size();
  Piece piece = this->piece(number, isLeaf ? keptEnd : args[values + 1]);
  Value from = args[values], size = loop.segment;
  if (isSized)
    size = b.select(piece.isKept, loop.kept, size);
  if (loop.storesLast) {
    Value isStored = isStoredLast();
    Value isLast = b.both(isStored, b.equal(number, loop.segments));
    piece.isStored =
        isSized ? b.select(piece.isKept, piece.isKept, isLast) : isLast;
  }
  Value to = b.least(b.add(from, size), loop.most);
  Outcome out = run(piece, {from, to, loop.own}, args.take_front(values));
  Values next = out.state;
  next.push_back(to);
  if (!isLeaf) {
    Value after = out.row ? out.row : piece.keptEnd;
    next.push_back(isSized ? b.select(piece.isKept, after, piece.keptEnd)
                           : piece.keptEnd);
    next.push_back(after);
  }
  return next;
}

Values Pieces::run(ValueRange state) {
  // Planning has written where checkpoints are to stand.
  if (!isSized || loop.inside)
    tape::FenceOp::create(b);
  none = b.i32(0);
  one = b.i32(1);
  keptEnd = isSized ? keptEndOfSized() : loop.keptEnd;
  Values inits(state);
  inits.push_back(isSized ? none : loop.kept);
  if (!isLeaf)
    inits.append({keptEnd, keptEnd});
  Values ends = b.loop(isSized ? none : one, afterLast(), inits,
                       [&](Value p, ValueRange args) { return next(p, args); });
  unsigned values = state.size();
  loop.keptEnd = isLeaf ? keptEnd : ends[values + 1];
  loop.lastEnd = isLeaf ? Value() : ends[values + 2];
  loop.segments = b.where(loop.fit, loop.segments);
  loop.free = b.add(loop.keptEnd, b.times(loop.segments, words));
  ends.truncate(values);
  return ends;
}

/// Counts rows and plans. Private arrays hold then what the next run of the
/// loop starts with, or if it has run for good, what it has left in them.
/// Returns whether all iterations are kept.
static Value countAndPlan(WorkItem &item, OpenLoop &loop, Value pred,
                          Outcome &whole) {
  RowBuilder &b = item.b;
  bool restores = countingChangesLocals(item.shape, loop.state);
  if (restores)
    loop.elements = elementsOf(b, loop.locals);
  Value left = b.sub(tape::RowsOp::create(b, b.getI32Type()), item.row);
  whole = countRows(item, loop, pred, left);
  if (!restores)
    return planSegments(item, loop, whole, left);
  Values after = elementsOf(b, loop.locals);
  setElements(b, loop.locals, loop.elements);
  Value all = planSegments(item, loop, whole, left);
  if (!loop.state.isSized()) {
    b.selectAll(b.both(loop.fit, b.negated(all)), loop.elements, after);
    setElements(b, loop.locals, loop.elements);
  }
  return all;
}

void runInSegments(WorkItem &item, Operation *op, Value pred) {
  OpenLoop loop{LoopState(item.shape, op)};
  loop.inits = mapped(loop.state.inits(), item.map);
  loop.locals = mapped(loop.state.locals(), item.map);
  loop.first = item.row;
  Outcome whole;
  Value all = countAndPlan(item, loop, pred, whole);
  loop.storesLast = --item.loopsLeft == 0;
  bool isSized = loop.state.isSized();
  Values last =
      Pieces(item, loop)
          .run(isSized ? loop.inits : afterKept(item, loop, whole, all));
  item.row = loop.free;
  if (isSized)
    whole.state = results(item, loop.state, last, pred, item.map);
  item.map.map(op->getResults(), whole.state);
  item.open.try_emplace(op, std::move(loop));
}

} // namespace costate::conversion
