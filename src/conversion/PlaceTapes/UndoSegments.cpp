#include "conversion/PlaceTapes/Bounds.h"
#include "conversion/PlaceTapes/Checkpoints.h"
#include "conversion/PlaceTapes/Forward.h"
#include "conversion/PlaceTapes/Inside.h"
#include "conversion/PlaceTapes/Reverse.h"
#include "conversion/PlaceTapes/Segments.h"

using namespace mlir;

namespace costate::conversion {
namespace {

/// Segments, the last one first, are run again and undone; then the iterations
/// that were kept. The last one may still be there.
class Undoing {
public:
  Undoing(WorkItem &item, OpenLoop &loop, scf::ForOp reversed, Value pred)
      : item(item), b(item.b), loop(loop), reversed(reversed), pred(pred),
        isLeaf(item.shape.level(loop.state.op()).isLeaf()) {}

  /// The adjoints in front of all iterations.
  Values undoAll();

private:
  Values undoRound(Value round, ValueRange args);
  Values undo(Value round, Value isKept, Value number,
              const Iterations &iterations, ValueRange adjoints);
  Value runAgain(const Iterations &iterations, Value isKept, Value isStored,
                 Value number);
  Values restored(Value number, const Iterations &iterations);

  WorkItem &item;
  RowBuilder &b;
  OpenLoop &loop;
  scf::ForOp reversed;
  Value pred;
  bool isLeaf;
  Value own, one, none;
};

/// The state in front of segment `number`.
Values Undoing::restored(Value number, const Iterations &iterations) {
  Value row = b.add(loop.keptEnd, b.times(number, loop.state.checkpointRows()));
  return readCheckpoint(b, loop, row, iterations.first);
}

/// Writes the iterations of a segment unless they are there; nests: returns the
/// row after them.
Value Undoing::runAgain(const Iterations &iterations, Value isKept,
                        Value isStored, Value number) {
  SmallVector<Type> types;
  if (!isLeaf)
    types.push_back(b.getI32Type());
  auto isThere = [&]() -> Values {
    if (isLeaf)
      return {};
    return {loop.storesLast ? b.select(isKept, loop.keptEnd, loop.lastEnd)
                            : loop.keptEnd};
  };
  auto again = [&]() -> Values {
    Outcome out =
        run(item, loop.state, iterations, restored(number, iterations),
            item.map, {Keep::Rows, loop.free, {}});
    if (isLeaf)
      return {};
    return {out.row};
  };
  Values end = b.branch(isStored, types, isThere, again);
  return isLeaf ? Value() : end[0];
}

Values Undoing::undo(Value round, Value isKept, Value number,
                     const Iterations &iterations, ValueRange adjoints) {
  Value row = b.select(isKept, loop.first, loop.free), isStored = isKept;
  if (loop.storesLast)
    isStored = b.select(isKept, isKept, b.equal(round, none));
  Value end = runAgain(iterations, isKept, isStored, number);
  return isLeaf ? undoLeaf(item, reversed, iterations, row, adjoints, item.map,
                           loop.same && pred == item.running)
                : undoNest(item, reversed, iterations, end, adjoints, item.map);
}

/// `args`: the adjoints; after them the first iteration of the piece, and the
/// one after it.
Values Undoing::undoRound(Value round, ValueRange args) {
  tape::FenceOp::create(b);
  ValueRange adjoints = args.drop_back(2);
  Value isKept = b.equal(round, loop.segments);
  Iterations iterations{args[adjoints.size()], args.back(), own};
  Value number = b.sub(b.sub(loop.segments, one), round);
  auto undoPiece = [&] {
    return undo(round, isKept, number, iterations, adjoints);
  };
  auto undoDeep = [&] {
    return undoInside(item, loop, reversed, iterations,
                      restored(number, iterations), adjoints);
  };
  Values next = isLeaf ? undoPiece()
                       : b.branch(b.both(loop.inside, b.negated(isKept)),
                                  TypeRange(adjoints), undoDeep, undoPiece);
  Value further = b.sub(iterations.first, loop.segment);
  next.push_back(b.select(b.equal(number, none), none, further));
  next.push_back(iterations.first);
  return next;
}

Values Undoing::undoAll() {
  own = ownIterations(item, reversed, pred, item.map);
  one = b.i32(1);
  none = b.i32(0);
  Value rounds = b.add(loop.segments, one);
  Values inits = mapped(reversed.getInitArgs(), item.map);
  unsigned values = inits.size();
  Value before = b.sub(loop.segments, one);
  Value last = b.add(loop.kept, arith::MulIOp::create(b, before, loop.segment));
  Value isWhole = b.equal(loop.segments, none);
  inits.push_back(b.select(isWhole, none, last));
  inits.push_back(b.select(isWhole, loop.kept, loop.most));
  Values ends = b.loop(none, rounds, inits, [&](Value j, ValueRange args) {
    return undoRound(j, args);
  });
  ends.truncate(values);
  return ends;
}

} // namespace

void undoSegments(WorkItem &item, scf::ForOp reversed, Value pred) {
  OpenLoop &loop = item.open.find(item.shape.forwardOf(reversed))->second;
  Values ends = Undoing(item, loop, reversed, pred).undoAll();
  item.map.map(reversed.getResults(), ends);
}

} // namespace costate::conversion
