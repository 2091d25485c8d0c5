/// Turns of the reverse sweep, and a whole range.

#include "conversion/PlaceTapes/Rows.h"
#include "conversion/PlaceTapes/Walk.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace costate::conversion {

/// Turns of which the rows are read before the first of them is undone: loads
/// take longer than what they are for.
constexpr int64_t readAhead = 4;
/// Of the code of one turn, and rows of a record, for which that pays.
constexpr unsigned shortest = 64;
constexpr int64_t narrowest = 4;

struct Emitter::Undone {
  scf::ForOp reversed;
  const TapeLevel &level;
  Turns turns;
  Value row;
  const IRMapping &at;
  Value mine; ///< i32: turns from the first one on that are this lane's
  bool pure;  ///< see isPureTurn
};

/// All records of turn `first + place`, whether they are this lane's or not.
llvm::DenseMap<int64_t, Values> Emitter::readTurn(const Undone &leaf,
                                                  Value place) {
  Value start = add(leaf.row, times(place, leaf.level.rows()));
  llvm::DenseMap<int64_t, Values> values;
  for (int64_t record : leaf.level.groups.front().records) {
    Value at = add(start, i64(shape.rowOf(record)));
    auto read = tape::ReadOp::create(b, shape.typesOf(record), at);
    values[record] = Values(read.getResults());
  }
  return values;
}

Values Emitter::undoTurn(const Undone &leaf, Value place,
                         const llvm::DenseMap<int64_t, Values> &read,
                         ValueRange carried) {
  scf::ForOp reversed = leaf.reversed;
  Value k = add(leaf.turns.first, place);
  Value mine = less(narrow(place), leaf.mine);
  auto body = [&] {
    IRMapping inner = leaf.at;
    Value last = sub(leaf.turns.own, i64(1));
    inner.map(reversed.getInductionVar(), sub(last, k));
    inner.map(reversed.getRegionIterArgs(), carried);
    auto known = std::exchange(records, read);
    for (Operation &op : reversed.getBody()->without_terminator())
      clone(&op, inner, {Keep::Nothing, leaf.row, {}});
    records = std::move(known);
    return mapped(reversed.getBody()->getTerminator()->getOperands(), inner);
  };
  if (!leaf.pure)
    return branch(mine, TypeRange(carried), body,
                  [&] { return Values(carried); });
  // Lanes that wait cost nothing: they compute as well, and forget it.
  Values next = body();
  for (auto [value, old] : llvm::zip(next, carried))
    value = select(mine, value, old);
  return next;
}

/// Whether running a turn with any values changes nothing but what it leaves.
static bool isPureTurn(scf::ForOp reversed) {
  return llvm::all_of(
      reversed.getBody()->without_terminator(), [](Operation &op) {
        return isa<tape::PopOp>(op) || (op.getNumRegions() == 0 && isPure(&op));
      });
}

static bool isShort(scf::ForOp reversed, const TapeLevel &level) {
  unsigned count = 0;
  reversed.walk([&](Operation *) { ++count; });
  return count <= shortest && level.rows() <= narrowest;
}

/// Back from the last row that any lane has.
Values Emitter::undoLeaf(scf::ForOp reversed, const Turns &turns, Value row,
                         ValueRange adjoints, const IRMapping &at) {
  const TapeLevel &level = shape.level(shape.forwardOf(reversed));
  Value here = least(turns.own, turns.end);
  Value mine = narrow(sub(most(here, turns.first), turns.first));
  Undone leaf{reversed, level, turns, row, at, mine, isPureTurn(reversed)};
  Value count = sub(turns.end, turns.first), rest = count;
  Values carried(adjoints);
  if (isShort(reversed, level)) {
    Value size = i64(readAhead);
    Value batches = arith::DivUIOp::create(b, count, size);
    rest = arith::RemUIOp::create(b, count, size);
    carried = loop(i64(0), batches, carried, [&](Value j, ValueRange args) {
      Value behind = sub(count, times(j, readAhead));
      SmallVector<llvm::DenseMap<int64_t, Values>> read;
      Values places, now(args);
      for (int64_t k = 0; k < readAhead; ++k) {
        places.push_back(sub(behind, i64(k + 1)));
        read.push_back(readTurn(leaf, places.back()));
      }
      for (int64_t k = 0; k < readAhead; ++k)
        now = undoTurn(leaf, places[k], read[k], now);
      return now;
    });
  }
  return loop(i64(0), rest, carried, [&](Value j, ValueRange args) {
    Value place = sub(sub(rest, j), i64(1));
    return undoTurn(leaf, place, readTurn(leaf, place), args);
  });
}

Values Emitter::undoNest(scf::ForOp reversed, const Turns &turns, Value &row,
                         ValueRange adjoints, const IRMapping &at) {
  const TapeLevel &level = shape.level(shape.forwardOf(reversed));
  Values inits(adjoints);
  inits.push_back(row);
  Value count = sub(turns.end, turns.first);
  Values ends = loop(i64(0), count, inits, [&](Value j, ValueRange carried) {
    Value k = sub(sub(turns.end, i64(1)), j);
    Value mine = less(k, turns.own);
    IRMapping inner = at;
    inner.map(reversed.getInductionVar(), sub(sub(turns.own, i64(1)), k));
    inner.map(reversed.getRegionIterArgs(), carried.drop_back());
    ReverseWalk walk(*this, level, inner, carried.back(), false);
    Block *body = reversed.getBody();
    walk.walk(body->begin(), body->getTerminator()->getIterator(), mine);
    Values next = mapped(body->getTerminator()->getOperands(), inner);
    for (auto [value, old] : llvm::zip(next, carried.drop_back()))
      value = select(mine, value, old);
    next.push_back(walk.start());
    return next;
  });
  row = ends.pop_back_val();
  return ends;
}

void Emitter::undoInner(scf::ForOp reversed, Value pred, IRMapping &at,
                        Value &row) {
  const TapeLevel &level = shape.level(shape.forwardOf(reversed));
  Value own = ownTurns(reversed, pred, at);
  Value most = mostTurns(reversed, pred, own);
  Values inits = mapped(reversed.getInitArgs(), at);
  Turns turns{i64(0), most, own};
  if (level.isLeaf()) {
    row = sub(row, times(most, level.rows()));
    at.map(reversed.getResults(), undoLeaf(reversed, turns, row, inits, at));
  } else {
    at.map(reversed.getResults(), undoNest(reversed, turns, row, inits, at));
  }
}

void Emitter::settle() {
  if (!tiles)
    return;
  tape::SettleOp::create(b, fits, need, fewest);
  running = both(active, fits);
}

void Emitter::emit() {
  const TapeLevel &level = shape.level(nullptr);
  if (tiles) {
    active = tape::ActiveOp::create(b, b.getI1Type());
    row = i64(0);
    start(level);
  }
  Block *body = shape.body();
  tape::TurnOp turn = shape.turn;
  ForwardWalk forward(*this, level, map, {Keep::Nothing, {}, {}}, true);
  forward.walk(body->begin(), turn->getIterator(), active);
  settle();
  ReverseWalk reverse(*this, level, map, {}, true);
  reverse.walk(std::next(turn->getIterator()),
               body->getTerminator()->getIterator(), running);
}

} // namespace costate::conversion
